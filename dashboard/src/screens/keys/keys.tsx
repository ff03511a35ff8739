import { useInfiniteQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type Key, type KeyWithSecret, keysQuery } from "../../api/keys.ts";
import { useCanManage } from "../../api/session.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Page } from "../../components/page.tsx";
import { Paged } from "../../components/paged.tsx";
import { KeyDialog } from "./key-dialog.tsx";
import { KeyTable } from "./key-table.tsx";
import { OwnKey } from "./own-key.tsx";
import { RevokeDialog } from "./revoke-dialog.tsx";
import { SecretDialog } from "./secret-dialog.tsx";

type Open =
  | { readonly what: "new" }
  | { readonly what: "edit" | "revoke"; readonly key: Key }
  | { readonly what: "secret"; readonly key: KeyWithSecret };

const intro = "Each program gets a key of its own, with a budget it cannot exceed.";

export function Keys() {
  const canManage = useCanManage();
  return canManage ? (
    <AllKeys />
  ) : (
    <Page title="Keys" intro="This key sees itself only. Sign in with a key that has the scope manage to see all keys.">
      <OwnKey />
    </Page>
  );
}

function AllKeys() {
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const make = (
    <Button look="primary" onClick={() => setOpen({ what: "new" })}>
      New key
    </Button>
  );
  return (
    <Page title="Keys" intro={intro} actions={make}>
      <Paged
        query={useInfiniteQuery(keysQuery)}
        empty={
          <EmptyState title="No keys yet">
            <p>Make one for each program that calls models.</p>
          </EmptyState>
        }
      >
        {(keys) => (
          <KeyTable
            keys={keys}
            onEdit={(key) => setOpen({ what: "edit", key })}
            onRevoke={(key) => setOpen({ what: "revoke", key })}
          />
        )}
      </Paged>
      {open?.what === "new" && <KeyDialog onClose={close} onMade={(key) => setOpen({ what: "secret", key })} />}
      {open?.what === "edit" && <KeyDialog edited={open.key} onClose={close} />}
      {open?.what === "revoke" && <RevokeDialog target={open.key} onClose={close} />}
      {open?.what === "secret" && <SecretDialog made={open.key} onClose={close} />}
    </Page>
  );
}
