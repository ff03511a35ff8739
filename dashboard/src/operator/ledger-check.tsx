import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { Card } from "../components/card.tsx";
import { ErrorNote } from "../components/error-note.tsx";
import { Money } from "../components/money.tsx";
import { ProgressBar } from "../components/progress-bar.tsx";
import { Section } from "../components/section.tsx";
import { Time } from "../components/time.tsx";
import { count } from "../lib/format.ts";
import { sumUsd } from "../lib/usd.ts";
import { admin } from "./api.ts";

/** The number of pages in one request: thousands of accounts. */
const pages = 5;

interface Checked {
  readonly ok: boolean;
  readonly accounts: number;
  readonly ofAccounts: number;
  readonly differenceUsd: string;
  readonly openHolds: number;
  readonly overdueHolds: number;
  readonly undecided: number;
}

const nothing: Checked = {
  ok: true,
  accounts: 0,
  ofAccounts: 0,
  differenceUsd: "0",
  openHolds: 0,
  overdueHolds: 0,
  undecided: 0,
};

/** Checks all accounts in batches, and reports after each batch. */
async function check(full: boolean, report: (checked: Checked) => void): Promise<Checked & { at: number }> {
  let sum = nothing;
  for (let after: string | null | undefined; after !== null; ) {
    const query = { pages, ...(full && { full: "true" as const }), ...(after && { after }) };
    const part = await unwrap(admin.GET("/ledger/check", { params: { query } }));
    sum = {
      ok: sum.ok && part.ok,
      accounts: sum.accounts + part.accounts,
      ofAccounts: part.of_accounts,
      differenceUsd: sumUsd([sum.differenceUsd, part.difference_usd]),
      openHolds: sum.openHolds + part.open_holds,
      overdueHolds: sum.overdueHolds + part.overdue_holds,
      undecided: sum.undecided + part.undecided,
    };
    report(sum);
    after = part.next;
  }
  return { ...sum, at: Date.now() / 1000 };
}

export function LedgerCheck() {
  const [progress, setProgress] = useState(nothing);
  const checking = useMutation({
    mutationFn: (full: boolean) => {
      setProgress(nothing);
      return check(full, setProgress);
    },
  });
  const { accounts, ofAccounts } = progress;
  return (
    <Section title="Ledger check">
      <Card className="flex flex-col gap-5">
        <p className="text-muted">
          For every account, credits less costs must be what is available and held. A full check reads every entry
          again; the quick one starts from checkpoints.
        </p>
        <div className="flex flex-wrap gap-3">
          <Button look="primary" busy={checking.isPending} onClick={() => checking.mutate(false)}>
            Check
          </Button>
          <Button disabled={checking.isPending} onClick={() => checking.mutate(true)}>
            Check every entry
          </Button>
        </div>
        {checking.isPending && (
          <div className="flex flex-col gap-2">
            <ProgressBar
              label="Ledger check"
              value={ofAccounts === 0 ? undefined : Math.min(1, accounts / ofAccounts)}
              tone={progress.ok ? "accent" : "bad"}
            />
            <p className="text-muted tabular-nums" aria-live="polite">
              {ofAccounts === 0
                ? "Reading the first accounts"
                : `${count(accounts)} of about ${count(ofAccounts)} accounts`}
            </p>
          </div>
        )}
        {checking.error && <ErrorNote error={checking.error} />}
        {checking.data && <Result checked={checking.data} />}
      </Card>
    </Section>
  );
}

function Result({ checked }: { readonly checked: Checked & { readonly at: number } }) {
  return (
    <output className="flex flex-wrap items-center gap-x-6 gap-y-2">
      {checked.ok ? <Badge tone="good">The books agree</Badge> : <Badge tone="bad">The books differ</Badge>}
      <span>{count(checked.accounts)} accounts</span>
      <span>
        Difference <Money usd={checked.differenceUsd} />
      </span>
      <span>{count(checked.openHolds)} open holds</span>
      <span className={checked.overdueHolds > 0 ? "text-warn" : undefined}>{count(checked.overdueHolds)} overdue</span>
      <span>{count(checked.undecided)} uncaptured</span>
      <span className="text-muted">
        <Time at={checked.at} />
      </span>
      {!checked.ok && (
        <p className="w-full text-bad">
          It is a defect. The API's log names the accounts: freeze them, save a dump of the database, and report it.
          Correct balances by credits only.
        </p>
      )}
    </output>
  );
}
