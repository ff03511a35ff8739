import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError, unwrap } from "../api/client.ts";
import { isOver, nameOf } from "../api/keys.ts";
import { queryClient } from "../api/query-client.ts";
import { BudgetBar } from "../components/budget.tsx";
import { Button } from "../components/button.tsx";
import { Code } from "../components/code.tsx";
import { ConfirmDialog, FormDialog } from "../components/dialog.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { KeyFields } from "../components/key-fields.tsx";
import { KeyStatus } from "../components/key-status.tsx";
import { ShownOnce } from "../components/shown-once.tsx";
import { Time } from "../components/time.tsx";
import { toast } from "../components/toast.tsx";
import { count } from "../lib/format.ts";
import { formOf, toNewKey, toPatch } from "../lib/key-form.ts";
import { useNow } from "../lib/time.ts";
import { admin, type Key } from "./api.ts";
import { Id } from "./links.tsx";
import { PagedTable } from "./paged-table.tsx";

const reread = () => void queryClient.invalidateQueries({ queryKey: ["admin", "keys"] });

type Dialogs = { readonly kind: "new" } | { readonly kind: "edit" | "revoke" | "sign in"; readonly key: Key };

export function AccountKeys({ account }: { readonly account: string }) {
  const [dialog, open] = useState<Dialogs | undefined>();
  const onClose = () => open(undefined);
  const now = useNow();
  return (
    <div className="flex flex-col items-start gap-4">
      <Button small onClick={() => open({ kind: "new" })}>
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
              cell: (key) => (
                <span className="flex flex-col" title={key.id}>
                  <span className="font-medium wrap-anywhere">{key.name ?? "Unnamed"}</span>
                  <Id>{key.prefix}</Id>
                </span>
              ),
            },
            { header: "State", cell: (key) => <KeyStatus of={key} /> },
            {
              header: "Scopes and models",
              cell: ({ scopes, models }) => (
                <span className="flex flex-col wrap-anywhere">
                  <span>{scopes.join(", ")}</span>
                  <span className="text-xs text-muted">{models?.join(", ") ?? "All models"}</span>
                </span>
              ),
            },
            { header: "Budget", cell: (key) => <BudgetBar budget={key.budget} name={nameOf(key)} />, wide: true },
            { header: "Limits", cell: ({ limits }) => limitsText(limits) },
            { header: "Last used", cell: ({ last_used_at: at }) => <Time at={at} />, numeric: true },
            { header: "Expires", cell: ({ expires_at: at }) => <Time at={at} />, numeric: true },
            {
              header: "",
              cell: (key) =>
                isOver(key, now) ? null : (
                  <span className="flex flex-wrap gap-2 sm:justify-end">
                    <Button small onClick={() => open({ kind: "edit", key })} aria-label={`Edit ${nameOf(key)}`}>
                      Edit
                    </Button>
                    {key.scopes.includes("manage") && (
                      <Button
                        small
                        onClick={() => open({ kind: "sign in", key })}
                        aria-label={`Sign-in link for ${nameOf(key)}`}
                      >
                        Sign-in link
                      </Button>
                    )}
                    <Button
                      small
                      look="danger"
                      onClick={() => open({ kind: "revoke", key })}
                      aria-label={`Revoke ${nameOf(key)}`}
                    >
                      Revoke
                    </Button>
                  </span>
                ),
              wide: true,
            },
          ]}
          empty={
            <EmptyState title="No keys yet">
              <p>Its owner cannot call anything before there is one.</p>
            </EmptyState>
          }
        />
      </div>
      {dialog?.kind === "new" && <EditKey account={account} onClose={onClose} />}
      {dialog?.kind === "edit" && <EditKey account={account} edited={dialog.key} onClose={onClose} />}
      {dialog?.kind === "revoke" && <Revoke target={dialog.key} onClose={onClose} />}
      {dialog?.kind === "sign in" && <SignIn target={dialog.key} onClose={onClose} />}
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

interface EditProps {
  readonly account: string;
  /** Omitted for a new key. */
  readonly edited?: Key;
  readonly onClose: () => void;
}

function EditKey({ account, edited, onClose }: EditProps) {
  const [form, setForm] = useState(() => formOf(edited));
  const save = useMutation({
    mutationFn: async () => {
      if (!edited)
        return unwrap(admin.POST("/accounts/{id}/keys", { params: { path: { id: account } }, body: toNewKey(form) }));
      await unwrap(admin.PATCH("/keys/{id}", { params: { path: { id: edited.id } }, body: toPatch(form) }));
      return undefined;
    },
    onSuccess: (made) => {
      reread();
      if (made) return;
      toast("Saved");
      onClose();
    },
  });
  if (save.data)
    return (
      <ShownOnce
        title="Copy the key now"
        text="It is shown this once. Only a hash of it is stored, so nobody can show it again."
        onClose={onClose}
      >
        <Code text={save.data.key} what="API key" />
      </ShownOnce>
    );
  return (
    <FormDialog
      title={edited ? "Edit the key" : "New key"}
      action={edited ? "Save" : "Create key"}
      busy={save.isPending}
      error={save.error}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      <KeyFields form={form} onChange={setForm} wrong={save.error instanceof ApiError ? save.error : undefined} />
    </FormDialog>
  );
}

interface TargetProps {
  readonly target: Key;
  readonly onClose: () => void;
}

function Revoke({ target, onClose }: TargetProps) {
  const revoke = useMutation({
    mutationFn: () => unwrap(admin.DELETE("/keys/{id}", { params: { path: { id: target.id } } })),
    onSuccess: () => {
      toast("The key is revoked");
      reread();
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Revoke ${nameOf(target)}?`}
      action="Revoke"
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>Every instance refuses it within a second. This cannot be undone. Calls that run end as usual.</p>
    </ConfirmDialog>
  );
}

/** A link that signs in as the account, for the operator or for its owner. */
function SignIn({ target, onClose }: TargetProps) {
  const link = useMutation({
    mutationFn: () => unwrap(admin.POST("/keys/{id}/sign-in-links", { params: { path: { id: target.id } } })),
  });
  if (link.data)
    return (
      <ShownOnce
        title="The link"
        text="It signs in to the dashboard once, within five minutes. Your own session stays as it is."
        onClose={onClose}
      >
        <Code text={link.data.url} what="Sign-in link" />
        <a className="font-medium text-accent-strong underline" href={link.data.url} target="_blank" rel="noreferrer">
          Open it here
        </a>
      </ShownOnce>
    );
  return (
    <FormDialog
      title={`Sign in with ${nameOf(target)}?`}
      action="Create the link"
      busy={link.isPending}
      error={link.error}
      onSubmit={() => link.mutate()}
      onClose={onClose}
    >
      <p className="text-muted">
        Whoever opens the link sees the account as its owner does, with what is stored of its calls, and can do
        everything that the key may. The audit log records that you created it.
      </p>
    </FormDialog>
  );
}
