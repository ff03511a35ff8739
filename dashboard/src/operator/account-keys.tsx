import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { queryClient } from "../api/query-client.ts";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { Code } from "../components/code.tsx";
import { ConfirmDialog, Dialog, FormDialog } from "../components/dialog.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Field } from "../components/field.tsx";
import { Select } from "../components/select.tsx";
import { Time } from "../components/time.tsx";
import { toast } from "../components/toast.tsx";
import { count } from "../lib/format.ts";
import { admin, type Key } from "./api.ts";
import { Id } from "./links.tsx";
import { PagedTable } from "./paged-table.tsx";

const reread = () => void queryClient.invalidateQueries({ queryKey: ["admin", "keys"] });

export function AccountKeys({ account }: { readonly account: string }) {
  const [isCreating, setCreating] = useState(false);
  const [revoking, revoke] = useState<Key | undefined>();
  return (
    <div className="flex flex-col items-start gap-4">
      <Button small onClick={() => setCreating(true)}>
        New key
      </Button>
      <div className="w-full">
        <PagedTable
          caption="Keys"
          queryKey={["keys", account]}
          read={(after, signal) =>
            unwrap(
              admin.GET("/accounts/{id}/keys", {
                params: { path: { id: account }, query: after ? { after } : {} },
                signal,
              }),
            )
          }
          rowKey={({ id }) => id}
          columns={[
            {
              header: "Key",
              cell: ({ name, prefix }) => (
                <span className="flex flex-col">
                  <span className="font-medium wrap-anywhere">{name ?? "No name"}</span>
                  <Id>{prefix}</Id>
                </span>
              ),
            },
            { header: "Scopes", cell: ({ scopes }) => scopes.join(", ") },
            { header: "Limits", cell: ({ limits }) => limitsText(limits) },
            { header: "Last used", cell: ({ last_used_at: at }) => <Time at={at} />, numeric: true },
            { header: "Created", cell: ({ created_at: at }) => <Time at={at} />, numeric: true },
            {
              header: "",
              cell: (key) =>
                key.revoked_at === null ? (
                  <Button
                    small
                    look="danger"
                    onClick={() => revoke(key)}
                    aria-label={`Revoke ${key.name ?? key.prefix}`}
                  >
                    Revoke
                  </Button>
                ) : (
                  <Badge tone="bad">Revoked</Badge>
                ),
              numeric: true,
            },
          ]}
          empty={
            <EmptyState title="No keys yet">
              <p>Its owner cannot call anything before there is one.</p>
            </EmptyState>
          }
        />
      </div>
      {isCreating && <NewKey account={account} onClose={() => setCreating(false)} />}
      {revoking && <Revoke keyToRevoke={revoking} onClose={() => revoke(undefined)} />}
    </div>
  );
}

function limitsText({ requests_per_minute, tokens_per_minute, concurrent_requests }: Key["limits"]): string {
  const own = [
    requests_per_minute !== null && `${count(requests_per_minute)} requests/min`,
    tokens_per_minute !== null && `${count(tokens_per_minute)} tokens/min`,
    concurrent_requests !== null && `${count(concurrent_requests)} at once`,
  ].filter(Boolean);
  return own.length > 0 ? own.join(", ") : "Default";
}

const scopeSets = [
  { value: "inference", label: "Calls models" },
  { value: "inference,manage", label: "Calls models and manages the account" },
  { value: "manage", label: "Manages the account only" },
] as const;
type Scopes = Key["scopes"];

function NewKey({ account, onClose }: { readonly account: string; readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState("inference");
  const create = useMutation({
    mutationFn: () =>
      unwrap(
        admin.POST("/accounts/{id}/keys", {
          params: { path: { id: account } },
          body: { ...(name.trim() && { name: name.trim() }), scopes: scopes.split(",") as Scopes },
        }),
      ),
    onSuccess: reread,
  });
  if (create.data)
    return (
      <Dialog title="The new key" onClose={onClose}>
        <div className="flex flex-col gap-5">
          <p className="text-muted">Copy it now: it is shown this once, and stored as a hash only.</p>
          <Code text={create.data.key} what="API key" />
          <div className="flex justify-end">
            <Button look="primary" onClick={onClose}>
              Done
            </Button>
          </div>
        </div>
      </Dialog>
    );
  return (
    <FormDialog
      title="New key"
      action="Make the key"
      busy={create.isPending}
      error={create.error}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <Field
        label="Name"
        hint="Such as production."
        maxLength={200}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Select label="Scopes" value={scopes} options={scopeSets} onChange={setScopes} />
    </FormDialog>
  );
}

function Revoke({
  keyToRevoke: { id, name, prefix },
  onClose,
}: {
  readonly keyToRevoke: Key;
  readonly onClose: () => void;
}) {
  const revoke = useMutation({
    mutationFn: () => unwrap(admin.DELETE("/keys/{id}", { params: { path: { id } } })),
    onSuccess: () => {
      toast("The key is revoked");
      reread();
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Revoke ${name ?? prefix}?`}
      action="Revoke"
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>Every instance refuses it within a second, for ever. Calls that run end as usual.</p>
    </ConfirmDialog>
  );
}
