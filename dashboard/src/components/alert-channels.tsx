import { useQuery } from "@tanstack/react-query";
import { useCanManage } from "../api/session.ts";
import { type Delivery, endpointsQuery, receives } from "../api/webhooks.ts";

interface Props {
  /** The subject of the sentence: "The alert". */
  readonly what: string;
  readonly event: Delivery["type"];
}

/** Says to who manages the account where an event is told: under the bell, and to webhook endpoints. */
export function AlertChannels({ what, event }: Props) {
  const canManage = useCanManage();
  const { data: endpoints } = useQuery({ ...endpointsQuery, enabled: canManage });
  if (!canManage) return null;
  const receivers = endpoints?.filter((endpoint) => receives(endpoint, event)) ?? [];
  return (
    <p className="text-xs text-muted">
      {what} is shown under the bell
      {receivers.length > 0
        ? `, and sent as ${event} to ${receivers.map(({ name, url }) => name ?? new URL(url).host).join(", ")}.`
        : `. No webhook endpoint receives ${event}: add one on the page Webhooks to be told elsewhere. No e-mail is sent.`}
    </p>
  );
}
