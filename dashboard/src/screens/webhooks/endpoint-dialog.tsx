import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "../../api/client.ts";
import { useAccountSession } from "../../api/session.ts";
import { createEndpoint, type Endpoint, eventTypes, updateEndpoint, webhooksChanged } from "../../api/webhooks.ts";
import { FormDialog } from "../../components/dialog.tsx";
import { Field, TextArea } from "../../components/field.tsx";
import { toast } from "../../components/toast.tsx";
import { type EndpointForm, type Event, formOf, toNewEndpoint, toPatch } from "./endpoint-form.ts";

interface Props {
  /** Omitted for a new endpoint. */
  readonly edited?: Endpoint;
  readonly onClose: () => void;
  readonly onMade?: (secret: string) => void;
}

const families: readonly { readonly event: Event; readonly label: string }[] = [
  { event: "*", label: "Everything" },
  { event: "job.*", label: "Jobs that ended" },
  { event: "response.*", label: "Background responses that ended" },
  { event: "batch.*", label: "Batches that ended or pause" },
  { event: "message_batch.*", label: "Batches of messages that ended" },
  { event: "balance.low", label: "The balance falls below its alert" },
  { event: "budget.threshold", label: "80 % and 100 % of a key's budget" },
  { event: "topup.completed", label: "A top-up is credited" },
  { event: "key.expiring", label: "A key expires soon" },
  { event: "provider_key.invalid", label: "A provider refuses your own key" },
];
const operators = { event: "upstream.*", label: "Upstreams of the service that fail and recover" } as const;
const singles = eventTypes.filter((type) => /^(job|response)\./.test(type));

export function EndpointDialog({ edited, onClose, onMade }: Props) {
  const queries = useQueryClient();
  const [form, setForm] = useState(() => formOf(edited));
  const save = useMutation({
    mutationFn: async () => {
      if (!edited) return (await createEndpoint(toNewEndpoint(form))).secret;
      await updateEndpoint(edited.id, toPatch(form));
      return undefined;
    },
    onSuccess: async (secret) => {
      await webhooksChanged(queries);
      if (secret !== undefined) return onMade?.(secret);
      toast("Saved");
      onClose();
    },
  });
  const set = (change: Partial<EndpointForm>) => setForm({ ...form, ...change });
  const wrong = save.error instanceof ApiError ? save.error : undefined;
  const errorOf = (field: string) => (wrong?.param?.startsWith(field) ? wrong.message : undefined);
  const isShownByField = ["url", "name", "headers"].some((field) => errorOf(field) !== undefined);
  const given = Object.keys(edited?.headers ?? {});
  return (
    <FormDialog
      title={edited ? "Edit the endpoint" : "New endpoint"}
      action={edited ? "Save" : "Create endpoint"}
      busy={save.isPending}
      error={isShownByField ? null : save.error}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      <Field
        label="URL"
        type="url"
        required
        placeholder="https://example.com/webhooks"
        maxLength={2048}
        value={form.url}
        error={errorOf("url")}
        onChange={({ target }) => set({ url: target.value })}
      />
      <Field
        label="Name"
        placeholder="What receives it"
        maxLength={100}
        value={form.name}
        error={errorOf("name")}
        onChange={({ target }) => set({ name: target.value })}
      />
      <Events form={form} onChange={(events) => set({ events })} />
      <Check
        label="Include JSON results of up to 256 KB in the events of jobs"
        checked={form.includeResult}
        onChange={(includeResult) => set({ includeResult })}
      />
      <TextArea
        label="Headers"
        rows={2}
        placeholder="authorization: Bearer …"
        hint={given.length === 0 ? "One a line" : `Sent now: ${given.join(", ")}. What you write here replaces all.`}
        value={form.headers}
        error={errorOf("headers")}
        onChange={({ target }) => set({ headers: target.value })}
      />
      {given.length > 0 && (
        <Check
          label="Remove the headers"
          checked={form.removeHeaders}
          onChange={(removeHeaders) => set({ removeHeaders })}
        />
      )}
    </FormDialog>
  );
}

interface EventsProps {
  readonly form: EndpointForm;
  readonly onChange: (events: readonly Event[]) => void;
}

function Events({ form: { events }, onChange }: EventsProps) {
  const check = (event: Event, label: string) => (
    <Check
      key={event}
      label={label}
      checked={events.includes(event)}
      onChange={(isChecked) => onChange(isChecked ? [...events, event] : events.filter((each) => each !== event))}
    />
  );
  const { account } = useAccountSession();
  const offered = account.operator_events ? [...families, operators] : families;
  const known: readonly Event[] = [...offered.map(({ event }) => event), ...singles];
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1.5 text-xs font-medium text-muted">Events</legend>
      {offered.map(({ event, label }) => check(event, label))}
      {events.filter((event) => !known.includes(event)).map((event) => check(event, event))}
      <details open={singles.some((event) => events.includes(event))}>
        <summary className="text-xs font-medium text-muted">Single events of jobs and responses</summary>
        <div className="mt-2 grid gap-x-4 sm:grid-cols-2">{singles.map((event) => check(event, event))}</div>
      </details>
    </fieldset>
  );
}

interface CheckProps {
  readonly label: string;
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
}

const Check = ({ label, checked, onChange }: CheckProps) => (
  <label className="flex min-h-8 items-center gap-2.5">
    <input
      type="checkbox"
      className="size-4 shrink-0 accent-accent"
      checked={checked}
      onChange={({ target }) => onChange(target.checked)}
    />
    {label}
  </label>
);
