import { isOver, type Key } from "../api/keys.ts";
import { useNow } from "../lib/time.ts";
import { Badge } from "./badge.tsx";

type Status = Pick<Key, "revoked_at" | "expires_at">;

export function KeyStatus({ of }: { readonly of: Status }) {
  const now = useNow();
  if (of.revoked_at !== null) return <Badge>Revoked</Badge>;
  return isOver(of, now) ? <Badge tone="warn">Expired</Badge> : <Badge tone="good">Active</Badge>;
}
