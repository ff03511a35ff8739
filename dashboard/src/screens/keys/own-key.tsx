import { useQuery } from "@tanstack/react-query";
import { nameOf, ownKeyQuery } from "../../api/keys.ts";
import { BudgetBar } from "../../components/budget.tsx";
import { Card, Figure } from "../../components/card.tsx";
import { KeyStatus } from "../../components/key-status.tsx";
import { Money } from "../../components/money.tsx";
import { QueryView } from "../../components/query-view.tsx";

/** The key of the session, shown if it may not list others. */
export function OwnKey() {
  return (
    <QueryView query={useQuery(ownKeyQuery)}>
      {(key) => (
        <div className="flex flex-col gap-4">
          <Card className="flex flex-wrap items-center justify-between gap-4">
            <div>
              <p className="font-medium">{key.name ?? "Unnamed"}</p>
              <code className="text-xs text-muted">{key.prefix}</code>
            </div>
            <KeyStatus of={key} />
            <BudgetBar budget={key.budget} name={nameOf(key)} />
          </Card>
          <div className="grid gap-4 sm:grid-cols-3">
            <Figure label="Spent today">
              <Money usd={key.usage.day_usd} />
            </Figure>
            <Figure label="Spent this month">
              <Money usd={key.usage.month_usd} />
            </Figure>
            <Figure label="Total spent">
              <Money usd={key.usage.total_usd} />
            </Figure>
          </div>
        </div>
      )}
    </QueryView>
  );
}
