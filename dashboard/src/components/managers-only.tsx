import type { ReactNode } from "react";
import { useCanManage } from "../api/session.ts";
import { EmptyState } from "./empty-state.tsx";

interface Props {
  /** The title for other keys: "This key cannot see invoices". */
  readonly otherwise: string;
  readonly children: ReactNode;
}

/** Shows a part of a page to keys that manage the account. */
export const ManagersOnly = ({ otherwise, children }: Props) =>
  useCanManage() ? (
    children
  ) : (
    <EmptyState title={otherwise}>
      <p>Sign in with a key that has the scope manage.</p>
    </EmptyState>
  );
