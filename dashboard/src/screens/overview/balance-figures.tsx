import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { balanceQuery } from "../../api/balance.ts";
import { useAccountSession, useCanManage } from "../../api/session.ts";
import { Button, buttonClass } from "../../components/button.tsx";
import { Figure } from "../../components/card.tsx";
import { Money } from "../../components/money.tsx";
import { Notice } from "../../components/notice.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { toNano } from "../../lib/usd.ts";
import { AlertDialog } from "./alert.tsx";

/** The balance is what is available, unless calls run. */
const Held = ({ balance, held }: { readonly balance: string; readonly held: string }) =>
  toNano(held) === 0n ? (
    "The balance: credits less costs"
  ) : (
    <>
      Of a balance of <Money usd={balance} />; <Money usd={held} /> is held for calls that run
    </>
  );

export function BalanceFigures() {
  const canManage = useCanManage();
  const { service } = useAccountSession();
  const [isEditing, setEditing] = useState(false);
  const query = useQuery(balanceQuery);
  const topUp = service.topups && (
    <Link to="/top-up" className={buttonClass("primary", true)}>
      Top up
    </Link>
  );
  return (
    <QueryView query={query} skeleton={<Skeleton rows={1} className="h-28" />}>
      {({ balance_usd, available_usd, held_usd, alert_below_usd: below }) => (
        <>
          {toNano(available_usd) <= 0n ? (
            <Notice action={topUp}>
              Nothing is available, so calls that cost something are refused.
              {!service.topups && " Ask the operator for credit."}
            </Notice>
          ) : (
            below !== null &&
            toNano(available_usd) < toNano(below) && (
              <Notice action={topUp}>
                Less than <Money usd={below} /> is available. Calls are refused when nothing is.
              </Notice>
            )
          )}
          <div className="grid grid-cols-2 gap-4">
            <Figure label="Available" note={<Held balance={balance_usd} held={held_usd} />}>
              <Money usd={available_usd} />
            </Figure>
            <Figure
              label="Alert below"
              note={
                canManage && (
                  <Button small className="mt-1" onClick={() => setEditing(true)}>
                    {below === null ? "Set an alert" : "Change"}
                  </Button>
                )
              }
            >
              {below === null ? <span className="text-muted">Off</span> : <Money usd={below} />}
            </Figure>
          </div>
          {isEditing && <AlertDialog below={below} onClose={() => setEditing(false)} />}
        </>
      )}
    </QueryView>
  );
}
