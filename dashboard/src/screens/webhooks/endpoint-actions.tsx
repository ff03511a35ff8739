import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { deleteEndpoint, type Endpoint, recoverEndpoint, rotateSecret, webhooksChanged } from "../../api/webhooks.ts";
import { Code } from "../../components/code.tsx";
import { ConfirmDialog, FormDialog } from "../../components/dialog.tsx";
import { Select } from "../../components/select.tsx";
import { ShownOnce } from "../../components/shown-once.tsx";
import { toast } from "../../components/toast.tsx";
import { daySeconds } from "../../lib/time.ts";

interface Props {
  readonly endpoint: Endpoint;
  readonly onClose: () => void;
}

export function SecretDialog({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <ShownOnce
      title="Copy the secret now"
      text="It is shown this once. Check the signature of every webhook with it, in a library of Standard Webhooks."
      onClose={onClose}
    >
      <Code text={secret} what="Secret" />
    </ShownOnce>
  );
}

const graces = [
  { value: String(daySeconds), label: "A day" },
  { value: String(7 * daySeconds), label: "7 days" },
  { value: "3600", label: "An hour" },
  { value: "0", label: "Not at all" },
];

interface RotateProps {
  /** Omitted for the secret of callbacks. */
  readonly endpoint?: Endpoint;
  readonly onMade: (secret: string) => void;
  readonly onClose: () => void;
}

export function RotateDialog({ endpoint, onMade, onClose }: RotateProps) {
  const queries = useQueryClient();
  const [grace, setGrace] = useState(String(daySeconds));
  const rotate = useMutation({
    mutationFn: () => rotateSecret(endpoint?.id, Number(grace)),
    onSuccess: async (secret) => {
      await webhooksChanged(queries);
      onMade(secret);
    },
  });
  return (
    <FormDialog
      title={endpoint ? "Replace the secret" : "Secret of x-xm-webhook"}
      action="Create new secret"
      busy={rotate.isPending}
      error={rotate.error}
      onSubmit={rotate.mutate}
      onClose={onClose}
    >
      {!endpoint && (
        <p className="text-muted">
          A call with the header x-xm-webhook sends its end to that URL, signed with this secret. The first one makes
          it; later ones replace it.
        </p>
      )}
      <Select
        label="The old secret signs as well for"
        value={grace}
        options={graces}
        onChange={setGrace}
        hint="Until then both are valid, so that receivers can change without missing an event."
      />
    </FormDialog>
  );
}

const spans = [
  { value: "3600", label: "The last hour" },
  { value: String(daySeconds), label: "The last day" },
  { value: String(7 * daySeconds), label: "The last 7 days" },
];

export function RecoverDialog({ endpoint, onClose }: Props) {
  const queries = useQueryClient();
  const [span, setSpan] = useState(String(daySeconds));
  const recover = useMutation({
    mutationFn: () => recoverEndpoint(endpoint.id, Math.floor(Date.now() / 1000) - Number(span)),
    onSuccess: async ({ count }) => {
      await webhooksChanged(queries);
      toast(count === 1 ? "1 delivery is sent again" : `${count} deliveries are sent again`);
      onClose();
    },
  });
  return (
    <FormDialog
      title="Send lost events again"
      action="Send them"
      busy={recover.isPending}
      error={recover.error}
      onSubmit={recover.mutate}
      onClose={onClose}
    >
      <p className="text-muted">
        Deliveries that failed, or were skipped while the endpoint was disabled, with the same webhook-id as before.
      </p>
      <Select label="Of" value={span} options={spans} onChange={setSpan} />
    </FormDialog>
  );
}

export function DeleteDialog({ endpoint, onClose }: Props) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteEndpoint(endpoint.id),
    onSuccess: async () => {
      await webhooksChanged(queries);
      toast("The endpoint is deleted");
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title="Delete this endpoint?"
      action="Delete the endpoint"
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="wrap-anywhere">{endpoint.url} gets no more events, and deliveries that wait are not sent.</p>
    </ConfirmDialog>
  );
}
