import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type Endpoint, testEndpoint, updateEndpoint, webhooksChanged } from "../../api/webhooks.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";

export type Action = "edit" | "rotate" | "recover" | "delete";

interface Props {
  readonly endpoint: Endpoint;
  readonly onAction: (action: Action) => void;
}

const notices = {
  failing: "No attempt has succeeded for a day. After five days the endpoint is disabled.",
  disabled: "It was disabled because it failed for five days, or answered 410. Enable it, then send lost events again.",
};

export function EndpointCard({ endpoint, onAction }: Props) {
  const { url, name, events, headers, notice, disabled } = endpoint;
  const facts = [
    ["Secret", <code key="secret">{endpoint.secret_hint}</code>],
    ["Last success", <Time key="success" at={endpoint.last_success_at} />],
    ["Last failure", <Time key="failure" at={endpoint.last_failure_at} />],
    ...(Object.keys(headers).length > 0 ? [["Headers", Object.keys(headers).join(", ")]] : []),
  ] as const;
  return (
    <Card className="flex flex-col gap-4">
      <div className="flex items-start justify-between gap-3">
        <div className="flex min-w-0 flex-col">
          <h3 className="font-medium wrap-anywhere">{name ?? new URL(url).host}</h3>
          <span className="text-xs wrap-anywhere text-muted">{url}</span>
        </div>
        <Badge tone={disabled ? "bad" : endpoint.failing_since === null ? "good" : "warn"}>
          {disabled ? "Disabled" : endpoint.failing_since === null ? "Enabled" : "Failing"}
        </Badge>
      </div>
      {notice && <Notice>{notices[notice]}</Notice>}
      <span className="flex flex-wrap gap-1">
        {events.map((event) => (
          <Badge key={event}>{event}</Badge>
        ))}
        {endpoint.include_result && <Badge tone="accent">With results</Badge>}
      </span>
      <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-3">
        {facts.map(([label, value]) => (
          <div key={label} className="flex min-w-0 flex-col gap-0.5">
            <dt className="text-xs text-muted">{label}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
      </dl>
      <Actions endpoint={endpoint} onAction={onAction} />
    </Card>
  );
}

function Actions({ endpoint: { id, disabled }, onAction }: Props) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const test = useMutation({
    mutationFn: () => testEndpoint(id),
    onSuccess: ({ id: delivery }) => navigate({ to: "/webhooks/$id", params: { id: delivery } }),
  });
  const toggle = useMutation({
    mutationFn: () => updateEndpoint(id, { disabled: !disabled }),
    onSuccess: async () => {
      await webhooksChanged(queries);
      toast(disabled ? "Enabled" : "Disabled");
    },
  });
  const error = test.error ?? toggle.error;
  return (
    <>
      <div className="flex flex-wrap gap-2">
        <Button small busy={test.isPending} onClick={() => test.mutate()}>
          Send a test
        </Button>
        <Button small onClick={() => onAction("edit")}>
          Edit
        </Button>
        <Button small busy={toggle.isPending} onClick={() => toggle.mutate()}>
          {disabled ? "Enable" : "Disable"}
        </Button>
        <Button small onClick={() => onAction("rotate")}>
          Replace the secret
        </Button>
        <Button small disabled={disabled} onClick={() => onAction("recover")}>
          Send lost events again
        </Button>
        <Button small look="danger" onClick={() => onAction("delete")}>
          Delete
        </Button>
      </div>
      {error && <ErrorNote error={error} />}
    </>
  );
}
