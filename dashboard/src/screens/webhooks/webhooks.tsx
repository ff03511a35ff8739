import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useCanManage } from "../../api/session.ts";
import { type Endpoint, endpointsQuery } from "../../api/webhooks.ts";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Deliveries } from "./deliveries.tsx";
import { DeleteDialog, RecoverDialog, RotateDialog, SecretDialog } from "./endpoint-actions.tsx";
import { type Action, EndpointCard } from "./endpoint-card.tsx";
import { EndpointDialog } from "./endpoint-dialog.tsx";

type Open =
  | { readonly what: "new" | "callbacks" }
  | { readonly what: Action; readonly endpoint: Endpoint }
  | { readonly what: "secret"; readonly secret: string };

export function Webhooks() {
  return useCanManage() ? (
    <All />
  ) : (
    <Page title="Webhooks" intro="Sign in with a key that has the scope manage to see webhooks.">
      <EmptyState title="This key cannot see webhooks" />
    </Page>
  );
}

function All() {
  const [open, setOpen] = useState<Open>();
  const close = () => setOpen(undefined);
  const made = (secret: string) => setOpen({ what: "secret", secret });
  return (
    <Page
      title="Webhooks"
      intro="Signed requests to your own addresses, when a job ends or the account needs you."
      actions={
        <>
          <Button onClick={() => setOpen({ what: "callbacks" })}>Secret of x-xm-webhook</Button>
          <Button look="primary" onClick={() => setOpen({ what: "new" })}>
            New endpoint
          </Button>
        </>
      }
    >
      <QueryView query={useQuery(endpointsQuery)}>
        {(endpoints) => (
          <>
            {endpoints.length === 0 ? (
              <EmptyState title="No endpoints yet">
                <p>Make one for each program that receives events. It gets a secret, with which it checks them.</p>
              </EmptyState>
            ) : (
              <div className="grid gap-4 xl:grid-cols-2">
                {endpoints.map((endpoint) => (
                  <EndpointCard
                    key={endpoint.id}
                    endpoint={endpoint}
                    onAction={(what) => setOpen({ what, endpoint })}
                  />
                ))}
              </div>
            )}
            <Deliveries endpoints={endpoints} />
          </>
        )}
      </QueryView>
      {open?.what === "new" && <EndpointDialog onClose={close} onMade={made} />}
      {open?.what === "callbacks" && <RotateDialog onClose={close} onMade={made} />}
      {open?.what === "edit" && <EndpointDialog edited={open.endpoint} onClose={close} />}
      {open?.what === "rotate" && <RotateDialog endpoint={open.endpoint} onClose={close} onMade={made} />}
      {open?.what === "recover" && <RecoverDialog endpoint={open.endpoint} onClose={close} />}
      {open?.what === "delete" && <DeleteDialog endpoint={open.endpoint} onClose={close} />}
      {open?.what === "secret" && <SecretDialog secret={open.secret} onClose={close} />}
    </Page>
  );
}
