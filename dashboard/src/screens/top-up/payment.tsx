import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { balanceKey } from "../../api/balance.ts";
import { type Topup, topupQuery, topupsQuery } from "../../api/topups.ts";
import { buttonClass } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { CopyButton } from "../../components/copy-button.tsx";
import { Money } from "../../components/money.tsx";
import { QrCode } from "../../components/qr-code.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { remaining, useNow } from "../../lib/time.ts";
import { TopupStatus } from "./topup-table.tsx";

/** One top-up, updated until it is paid. */
export function Payment({ id }: { readonly id: string }) {
  const queries = useQueryClient();
  const query = useQuery(topupQuery(id));
  const status = query.data?.status;
  useEffect(() => {
    if (status === undefined || status === "pending") return;
    void queries.invalidateQueries({ queryKey: topupsQuery.queryKey, exact: true });
    void queries.invalidateQueries({ queryKey: balanceKey });
  }, [status, queries]);
  return (
    <Card>
      <QueryView query={query}>
        {(topup) => (
          <div className="flex flex-col items-center gap-4 text-center">
            <p aria-live="polite" className="flex flex-wrap items-center justify-center gap-2 text-base font-semibold">
              <Money usd={topup.amount_usd} /> <TopupStatus status={topup.status} />
            </p>
            <State topup={topup} />
          </div>
        )}
      </QueryView>
    </Card>
  );
}

function State({ topup }: { readonly topup: Topup }) {
  const now = useNow();
  if (topup.status === "completed")
    return (
      <>
        <p>
          <Money usd={topup.received_usd} /> arrived. It is on the balance.
        </p>
        {topup.transaction && (
          <p className="flex max-w-full flex-wrap items-center justify-center gap-2 text-xs text-muted">
            <span className="wrap-anywhere">Transaction {topup.transaction}</span>
            <CopyButton text={topup.transaction} what="transaction" />
          </p>
        )}
      </>
    );
  if (topup.status === "expired")
    return (
      <p className="text-muted">The time to pay is over. A payment that still arrives is credited all the same.</p>
    );
  return (
    <>
      <QrCode text={topup.solana_pay_url} label="QR code of the payment, for a Solana wallet" />
      <p className="text-muted">Scan it with your wallet. It waits for {remaining(topup.expires_at, now)}.</p>
      <div className="flex flex-wrap justify-center gap-2">
        <a href={topup.solana_pay_url} className={buttonClass("primary", true)}>
          Open in a wallet
        </a>
        <CopyButton text={topup.solana_pay_url} what="payment link" label="Copy link" />
      </div>
    </>
  );
}
