import { useMutation } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { queryClient } from "../api/query-client.ts";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { FormDialog } from "../components/dialog.tsx";
import { EmptyState } from "../components/empty-state.tsx";
import { Field } from "../components/field.tsx";
import { Page } from "../components/page.tsx";
import { Select } from "../components/select.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import { Time } from "../components/time.tsx";
import { toast } from "../components/toast.tsx";
import { type Account, admin } from "./api.ts";
import { AccountLink, Id } from "./links.tsx";
import { PagedTable } from "./paged-table.tsx";
import { filled } from "./search.ts";

const route = getRouteApi("/operator/accounts");

export const tiers = [
  { value: "standard", label: "Standard" },
  { value: "elite", label: "Elite" },
] as const;

export function Accounts() {
  const { search } = route.useSearch();
  const navigate = route.useNavigate();
  const [isCreating, setCreating] = useState(false);
  return (
    <Page
      title="Accounts"
      intro="The owners of balances and keys."
      actions={
        <Button look="primary" onClick={() => setCreating(true)}>
          New account
        </Button>
      }
    >
      <search className="max-w-xl">
        <TextFilter
          label="Name or id"
          value={search}
          onChange={(text) => void navigate({ search: filled({ search: text }) })}
        />
      </search>
      <PagedTable
        caption="Accounts"
        queryKey={["accounts", search]}
        read={(after, signal) =>
          unwrap(
            admin.GET("/accounts", {
              params: { query: { ...(search && { search }), ...(after && { after }) } },
              signal,
            }),
          )
        }
        rowKey={({ id }) => id}
        columns={[
          {
            header: "Name",
            cell: ({ id, name }) => (
              <span className="flex flex-col">
                <AccountLink id={id}>{name}</AccountLink>
                <Id>{id}</Id>
              </span>
            ),
          },
          { header: "State", cell: (account) => <AccountState account={account} /> },
          { header: "Balance", usd: ({ balance_usd: usd }) => usd },
          { header: "Available", usd: ({ available_usd: usd }) => usd },
          { header: "Created", cell: ({ created_at: at }) => <Time at={at} />, numeric: true },
        ]}
        empty={
          search ? (
            <EmptyState title={`No account is called “${search}…”`}>
              <p>Names are searched from their beginning, in any case; an id is searched whole.</p>
            </EmptyState>
          ) : (
            <EmptyState title="No accounts yet">
              <p>An account has a balance and keys. Make the first one, credit it, and give its owner a key.</p>
              <Button look="primary" onClick={() => setCreating(true)}>
                New account
              </Button>
            </EmptyState>
          )
        }
      />
      {isCreating && <NewAccount onClose={() => setCreating(false)} />}
    </Page>
  );
}

export const AccountState = ({ account: { frozen, tier } }: { readonly account: Account }) => (
  <span className="inline-flex flex-wrap gap-1.5">
    {frozen ? <Badge tone="bad">Frozen</Badge> : <Badge tone="good">Active</Badge>}
    {tier === "elite" && <Badge tone="accent">Elite</Badge>}
  </span>
);

function NewAccount({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [tier, setTier] = useState("standard");
  const navigate = useNavigate();
  const create = useMutation({
    mutationFn: () =>
      unwrap(admin.POST("/accounts", { body: { name, tier: tier === "elite" ? "elite" : "standard" } })),
    onSuccess: async ({ id }) => {
      toast(`Account ${name} is made`);
      void queryClient.invalidateQueries({ queryKey: ["admin", "accounts"] });
      await navigate({ to: "/operator/accounts/$id", params: { id } });
    },
  });
  return (
    <FormDialog
      title="New account"
      action="Make the account"
      busy={create.isPending}
      error={create.error}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <Field label="Name" required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />
      <Select label="Tier" hint="Elite accounts pay less." value={tier} options={tiers} onChange={setTier} />
    </FormDialog>
  );
}
