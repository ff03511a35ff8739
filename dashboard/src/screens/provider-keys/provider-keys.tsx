import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "../../api/client.ts";
import { keyProvidersQuery, type ProviderKey, providerKeysQuery } from "../../api/provider-keys.ts";
import { useCanManage } from "../../api/session.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Notice } from "../../components/notice.tsx";
import { Page } from "../../components/page.tsx";
import { Paged } from "../../components/paged.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { type Action, ProviderKeyCard } from "./provider-key-card.tsx";
import { EditDialog, NewDialog, RotateDialog } from "./provider-key-dialog.tsx";

type Open = { readonly what: "new" } | { readonly what: Action; readonly key: ProviderKey };

const title = "Provider keys";

export function ProviderKeys() {
  return useCanManage() ? (
    <All />
  ) : (
    <Page title={title} intro="Sign in with a key that has the scope manage to see provider keys.">
      <EmptyState title="This key cannot see provider keys" />
    </Page>
  );
}

function All() {
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const { data: providers, error } = useQuery(keyProvidersQuery);
  const isOff = error instanceof ApiError && error.code === "not_configured";
  const providerOf = ({ provider }: ProviderKey) => providers?.find(({ id }) => id === provider);
  const target = open && "key" in open ? { target: open.key, onClose: close } : undefined;
  const provider = open && "key" in open ? providerOf(open.key) : undefined;
  return (
    <Page
      title={title}
      intro="Your own keys for providers. Calls then run at your account there, and cost only a fee here."
      actions={
        providers && (
          <Button look="primary" onClick={() => setOpen({ what: "new" })}>
            New provider key
          </Button>
        )
      }
    >
      {isOff && (
        <Notice>
          This service cannot store provider keys: its operator has not set SECRETS_PUBLIC_KEY. Ask the operator to set
          it up.
        </Notice>
      )}
      {error && !isOff && <ErrorNote error={error} />}
      <Paged
        query={useInfiniteQuery(providerKeysQuery)}
        empty={
          <EmptyState title="No provider keys yet">
            <p>A key is checked with its provider before it is saved, and nobody can read it again.</p>
          </EmptyState>
        }
      >
        {(keys) => (
          <div className="grid gap-4 xl:grid-cols-2">
            {keys.map((key) => (
              <ProviderKeyCard
                key={key.id}
                target={key}
                canChange={providerOf(key) !== undefined}
                onAction={(what) => setOpen({ what, key })}
              />
            ))}
          </div>
        )}
      </Paged>
      {open?.what === "new" && providers && <NewDialog providers={providers} onClose={close} />}
      {target && provider && open?.what === "edit" && <EditDialog {...target} provider={provider} />}
      {target && provider && open?.what === "rotate" && <RotateDialog {...target} provider={provider} />}
      {target && open?.what === "delete" && <DeleteDialog {...target} />}
    </Page>
  );
}
