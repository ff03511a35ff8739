import { Page } from "../components/page.tsx";

export function Overview() {
  return <Page title="Overview">{null}</Page>;
}
