import type { NavigationItem } from "../components/navigation.tsx";

/** What the sidebar lists for an operator. */
export const operatorNavigation: readonly NavigationItem[] = [];
