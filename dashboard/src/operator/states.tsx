import { Badge, type Tone } from "../components/badge.tsx";
import { statusLabel } from "../lib/statuses.ts";

const upstreams: Readonly<Record<string, readonly [tone: Tone, text: string]>> = {
  ready: ["good", "Ready"],
  open: ["bad", "Breaker open"],
  "key refused": ["bad", "Key refused"],
  "no key": ["plain", "No key"],
};

export function UpstreamState({ state }: { readonly state: string }) {
  const [tone, text] = upstreams[state] ?? ["plain", statusLabel(state)];
  return <Badge tone={tone}>{text}</Badge>;
}

const calls: Readonly<Record<string, Tone>> = { succeeded: "good", failed: "bad", cancelled: "warn" };
export const CallStatus = ({ status, error }: { readonly status: string; readonly error?: string | undefined }) => (
  <Badge tone={calls[status] ?? "plain"}>{error ? `${statusLabel(status)}: ${error}` : statusLabel(status)}</Badge>
);

export function ResultStatus({ status, code }: { readonly status: number | null; readonly code: string | null }) {
  if (status === null) return <Badge tone="warn">Unknown</Badge>;
  return <Badge tone={status < 300 ? "good" : "bad"}>{code ? `${status} ${code}` : String(status)}</Badge>;
}
