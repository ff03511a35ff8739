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
import { SwitchButtons } from "../components/switch-buttons.tsx";
import { TextFilter } from "../components/text-filter.tsx";
import { Time } from "../components/time.tsx";
import { toast } from "../components/toast.tsx";
import { useChoice } from "../components/use-choice.ts";
import { daysBefore } from "../lib/format.ts";
import { useToday } from "../lib/time.ts";
import { type Account, admin, type ServiceUsage } from "./api.ts";
import { AccountLink, Id } from "./links.tsx";
import { PagedTable } from "./paged-table.tsx";
import { filled } from "./search.ts";

const route = getRouteApi("/operator/accounts");

export const tiers = [
  { value: "standard", label: "Standard" },
  { value: "elite", label: "Elite" },
] as const;

const orders = [
  { value: "newest", label: "Newest" },
  { value: "balance", label: "Balance" },
  { value: "spend", label: "Spend" },
] as const;
type Order = (typeof orders)[number]["value"];

const spendDays = 30;
/** The limit of one request for accounts by their ids. */
const mostIds = 100;

type Row = Account & { readonly spent_usd: string };

interface Reading {
  readonly order: Order;
  readonly search: string | undefined;
  readonly from: string;
  readonly to: string;
  readonly after: string | undefined;
  readonly signal: AbortSignal;
}

/** Reads a page of accounts with what each spent. Those with the largest balance or spend are one page. */
async function readAccounts({ order, search, from, to, after, signal }: Reading) {
  const spent = (account?: string) =>
    unwrap(
      admin.GET("/usage", {
        params: { query: { from, to, group_by: "account", ...(account && { account }) } },
        signal,
      }),
    );
  const accounts = (query: { ids?: string; sort?: "balance"; search?: string; after?: string; limit?: number }) =>
    unwrap(admin.GET("/accounts", { params: { query }, signal }));
  const withSpend = (account: Account, sums: readonly ServiceUsage[]): Row => ({
    ...account,
    spent_usd: sums.find((each) => each.account === account.id)?.cost_usd ?? "0",
  });
  if (order === "spend" && !search) {
    const { data: sums } = await spent();
    const ids = sums.flatMap(({ account }) => account ?? []).slice(0, mostIds);
    const { data } = ids.length > 0 ? await accounts({ ids: ids.join(",") }) : { data: [] };
    const byId = new Map(data.map((account) => [account.id, account]));
    const rows = ids.flatMap((id) => byId.get(id) ?? []).map((account) => withSpend(account, sums));
    return { data: rows, has_more: false, next: null };
  }
  const page = await accounts({
    ...(search && { search }),
    ...(after && { after }),
    ...(order === "balance" && !search && { sort: "balance", limit: mostIds }),
  });
  const ids = page.data.map(({ id }) => id);
  const { data: sums } = ids.length > 0 ? await spent(ids.join(",")) : { data: [] };
  return { ...page, data: page.data.map((account) => withSpend(account, sums)) };
}

export function Accounts() {
  const { search } = route.useSearch();
  const [order, setOrder] = useChoice("order", orders, "newest");
  const to = useToday();
  const from = daysBefore(to, spendDays - 1);
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
      <search className="flex flex-wrap items-end gap-3">
        <div className="w-full max-w-xl">
          <TextFilter
            label="Name or id"
            value={search}
            onChange={(text) => void navigate({ search: (before) => filled({ ...before, search: text }) })}
          />
        </div>
        {!search && <SwitchButtons label="Order" value={order} options={orders} onChange={setOrder} />}
      </search>
      <PagedTable
        caption="Accounts"
        queryKey={["accounts", search, order, to]}
        read={(after, signal) => readAccounts({ order, search, from, to, after, signal })}
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
          { header: `Spent in ${spendDays} days`, usd: ({ spent_usd: usd }) => usd },
          { header: "Created", cell: ({ created_at: at }) => <Time at={at} />, numeric: true },
        ]}
        empty={
          search ? (
            <EmptyState title={`No account is called “${search}…”`}>
              <p>Names are searched from their beginning, in any case; an id is searched whole.</p>
            </EmptyState>
          ) : (
            <EmptyState title="No accounts yet">
              <p>An account has a balance and keys. Create the first one, credit it, and give its owner a key.</p>
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
      toast(`Created ${name}`);
      void queryClient.invalidateQueries({ queryKey: ["admin", "accounts"] });
      await navigate({ to: "/operator/accounts/$id", params: { id } });
    },
  });
  return (
    <FormDialog
      title="New account"
      action="Create account"
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
