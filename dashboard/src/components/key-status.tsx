import { isOver, type Key } from "../api/keys.ts";
import { useNow } from "../lib/time.ts";
import { Badge } from "./badge.tsx";
import { type Budget, isSpent } from "./budget.tsx";

interface Status extends Pick<Key, "revoked_at" | "expires_at"> {
  readonly budget: Budget | null;
}

export function KeyStatus({ of }: { readonly of: Status }) {
  const now = useNow();
  if (of.revoked_at !== null) return <Badge>Revoked</Badge>;
  if (isOver(of, now)) return <Badge tone="warn">Expired</Badge>;
  return isSpent(of.budget) ? <Badge tone="bad">Budget spent</Badge> : <Badge tone="good">Active</Badge>;
}
