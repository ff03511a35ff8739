import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ApiError } from "../../api/client.ts";
import { useKeyNames } from "../../api/keys.ts";
import { type ProviderKey, providerKeysChanged, testProviderKey, updateProviderKey } from "../../api/provider-keys.ts";
import { Badge, type Tone } from "../../components/badge.tsx";
import { Button, buttonClass } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { checkedText } from "./provider-key-dialog.tsx";
import { modes } from "./provider-key-fields.tsx";

export type Action = "edit" | "rotate" | "delete";

interface Props {
  readonly target: ProviderKey;
  /** Without it, the credential and the settings cannot be changed. */
  readonly canChange: boolean;
  readonly onAction: (action: Action) => void;
}

type Status = ProviderKey["status"];
const states: Readonly<Record<Status, readonly [text: string, tone: Tone]>> = {
  ok: ["Valid", "good"],
  invalid: ["Invalid", "bad"],
  no_permission: ["No permission", "bad"],
  rate_limited: ["Rate limited", "warn"],
  unknown: ["Not checked", "plain"],
};

const some = (ids: readonly string[] | null, nameOf: (id: string) => string = (id) => id) =>
  ids === null ? "all" : ids.map(nameOf).join(", ");

export function ProviderKeyCard({ target, canChange, onAction }: Props) {
  const { name, provider, label, disabled, status, status_message, config } = target;
  const keyName = useKeyNames(target.key_ids !== null);
  const { deployments = {}, ...parts } = config;
  const [text, tone] = states[status];
  const facts = [
    ["Used", modes[target.mode]],
    ["Checked", <Time key="checked" at={target.checked_at} />],
    ["Last used", <Time key="used" at={target.last_used_at} />],
    ["Priority", target.priority],
    ["Models", some(target.models)],
    ["Calls of keys", some(target.key_ids, keyName)],
    ...Object.entries(parts),
    ...(Object.keys(deployments).length > 0 ? [["deployments", Object.values(deployments).join(", ")]] : []),
  ] as const;
  return (
    <Card className="flex flex-col gap-4">
      <div className="flex items-start justify-between gap-3">
        <div className="flex min-w-0 flex-col">
          <h2 className="font-medium wrap-anywhere">{name ?? provider}</h2>
          <span className="text-xs wrap-anywhere text-muted">
            {provider} <code>{label}</code>
          </span>
        </div>
        <span className="flex flex-wrap justify-end gap-1">
          {disabled && <Badge>Disabled</Badge>}
          <Badge tone={tone}>{text}</Badge>
        </span>
      </div>
      {status_message !== null && <Notice>{status_message}</Notice>}
      <dl className="grid gap-x-8 gap-y-3 sm:grid-cols-3">
        {facts.map(([fact, value]) => (
          <div key={fact} className="flex min-w-0 flex-col gap-0.5">
            <dt className="text-xs text-muted first-letter:uppercase">{fact}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
      </dl>
      <Actions target={target} canChange={canChange} onAction={onAction} />
    </Card>
  );
}

function Actions({ target: { id, disabled }, canChange, onAction }: Props) {
  const queries = useQueryClient();
  const isRefusal = (error: unknown) => error instanceof ApiError && error.code === "provider_key_invalid";
  const test = useMutation({
    mutationFn: () => testProviderKey(id),
    onSuccess: (tested) => toast(checkedText(tested)),
    // The card shows why.
    onError: (error) => isRefusal(error) && toast("The provider does not accept the key"),
    onSettled: () => providerKeysChanged(queries),
  });
  const toggle = useMutation({
    mutationFn: () => updateProviderKey(id, { disabled: !disabled }),
    onSuccess: async () => {
      await providerKeysChanged(queries);
      toast(disabled ? "Enabled" : "Disabled");
    },
  });
  const error = (isRefusal(test.error) ? null : test.error) ?? toggle.error;
  return (
    <>
      <div className="flex flex-wrap gap-2">
        <Button small busy={test.isPending} onClick={() => test.mutate()}>
          Test again
        </Button>
        <Link to="/requests" search={{ provider_key: id }} className={buttonClass("secondary", true)}>
          Calls and fees
        </Link>
        <Button small disabled={!canChange} onClick={() => onAction("edit")}>
          Edit
        </Button>
        <Button small busy={toggle.isPending} onClick={() => toggle.mutate()}>
          {disabled ? "Enable" : "Disable"}
        </Button>
        <Button small disabled={!canChange} onClick={() => onAction("rotate")}>
          Replace the credential
        </Button>
        <Button small look="danger" onClick={() => onAction("delete")}>
          Delete
        </Button>
      </div>
      {error && <ErrorNote error={error} />}
    </>
  );
}
