import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { Button, buttonClass } from "../components/button.tsx";
import { Figure } from "../components/card.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { Money } from "../components/money.tsx";
import { Page } from "../components/page.tsx";
import { QueryView } from "../components/query-view.tsx";
import { SwitchButtons } from "../components/switch-buttons.tsx";
import { Time } from "../components/time.tsx";
import { useChoice } from "../components/use-choice.ts";
import { count, daysBefore } from "../lib/format.ts";
import { useToday } from "../lib/time.ts";
import { fromNano } from "../lib/usd.ts";
import { Credit, EditAccount, Freeze } from "./account-actions.tsx";
import { AccountKeys } from "./account-keys.tsx";
import { AccountLedger } from "./account-ledger.tsx";
import { AccountState } from "./accounts.tsx";
import { accountQuery, admin, type ServiceUsageFilter, type Account as Shown, serviceUsageQuery } from "./api.ts";
import { Id } from "./links.tsx";
import { sumsOf, UsageSection } from "./usage-section.tsx";

const route = getRouteApi("/operator/accounts/$id");

export function Account() {
  const { id } = route.useParams();
  const account = useQuery(accountQuery(id));
  return (
    <Page
      title={account.data?.name ?? "Account"}
      intro={<Id>{id}</Id>}
      actions={
        <span className="inline-flex items-center gap-3">
          {account.data && <AccountState account={account.data} />}
          <CopyButton text={id} what="account id" label="Copy id" />
        </span>
      }
    >
      <QueryView query={account}>{(data) => <Details account={data} />}</QueryView>
    </Page>
  );
}

const parts = [
  { value: "keys", label: "Keys" },
  { value: "usage", label: "Usage" },
  { value: "ledger", label: "Ledger" },
] as const;
const shownDays = 30;
type Dialogs = "credit" | "freeze" | "edit";

function Details({ account }: { readonly account: Shown }) {
  const [part, show] = useChoice("part", parts, "keys");
  const [dialog, open] = useState<Dialogs | undefined>();
  const onClose = () => open(undefined);
  const to = useToday();
  const filter = { account: account.id, from: daysBefore(to, shownDays - 1), to };
  return (
    <>
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2 lg:grid-cols-4">
        <Figure label="Balance" note="Credits less captured costs">
          <Money usd={account.balance_usd} />
        </Figure>
        <Figure label="Available" note="What calls may still hold">
          <Money usd={account.available_usd} />
        </Figure>
        <Figure
          label="Held"
          note={account.open_holds === 0 ? "No call runs" : `${account.open_holds} holds and leases of calls that run`}
        >
          <Money usd={account.held_usd} />
        </Figure>
        <Spend filter={filter} />
      </div>
      <div className="flex flex-wrap items-center gap-3">
        <Button look="primary" onClick={() => open("credit")}>
          Credit
        </Button>
        <Button onClick={() => open("edit")}>Name and tier</Button>
        <Button look={account.frozen ? "secondary" : "danger"} onClick={() => open("freeze")}>
          {account.frozen ? "Unfreeze" : "Freeze"}
        </Button>
        <Link to="/operator/requests" search={{ account: account.id }} className={buttonClass("quiet")}>
          Requests
        </Link>
        <Link to="/operator/batches" search={{ account: account.id }} className={buttonClass("quiet")}>
          Open batches
        </Link>
        <Link to="/operator/audit" search={{ target: account.id }} className={buttonClass("quiet")}>
          Audit log
        </Link>
      </div>
      <div className="flex flex-col gap-5">
        <div>
          <SwitchButtons label="Part" value={part} options={parts} onChange={show} />
        </div>
        {part === "keys" && <AccountKeys account={account.id} />}
        {part === "usage" && <UsageSection filter={filter} byModel />}
        {part === "ledger" && <AccountLedger account={account.id} />}
      </div>
      {dialog === "credit" && <Credit account={account} onClose={onClose} />}
      {dialog === "edit" && <EditAccount account={account} onClose={onClose} />}
      {dialog === "freeze" && <Freeze account={account} onClose={onClose} />}
    </>
  );
}

/** The spend of the account, and the time of its last call. */
function Spend({ filter }: { readonly filter: ServiceUsageFilter & { readonly account: string } }) {
  const { account } = filter;
  const usage = useQuery(serviceUsageQuery({ ...filter, groupBy: "day,model" }));
  const last = useQuery({
    queryKey: ["admin", "ledger", account, "last call"],
    queryFn: ({ signal }) =>
      unwrap(
        admin.GET("/accounts/{id}/ledger", {
          params: { path: { id: account }, query: { kind: "usage", limit: 1 } },
          signal,
        }),
      ),
  });
  const sums = usage.data && sumsOf(usage.data.data);
  const lastAt = last.data && (last.data.data[0]?.created_at ?? null);
  return (
    <Figure
      label={`Spent in ${shownDays} days`}
      note={
        <>
          {sums && `${count(sums.calls)} calls; `}
          {lastAt === null
            ? "none yet"
            : lastAt !== undefined && (
                <>
                  last one <Time at={lastAt} />
                </>
              )}
        </>
      }
    >
      {sums ? <Money usd={fromNano(sums.charged)} /> : "–"}
    </Figure>
  );
}
