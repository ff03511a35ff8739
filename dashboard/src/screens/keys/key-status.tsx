import { isOver, type Key } from "../../api/keys.ts";
import { Badge } from "../../components/badge.tsx";
import { useNow } from "../../lib/time.ts";

type Status = Pick<Key, "revoked_at" | "expires_at">;

export function KeyStatus({ of }: { readonly of: Status }) {
  const now = useNow();
  if (of.revoked_at !== null) return <Badge>Revoked</Badge>;
  return isOver(of, now) ? <Badge tone="warn">Expired</Badge> : <Badge tone="good">Active</Badge>;
}
