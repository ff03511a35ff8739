import { useQuery } from "@tanstack/react-query";
import { modelsQuery } from "../../api/models.ts";
import type { CallWithAttempts } from "../../api/requests.ts";
import { useAccountSession } from "../../api/session.ts";
import { Money } from "../../components/money.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { type CostLine, costLines, whyCharged } from "../../lib/cost.ts";
import { count } from "../../lib/format.ts";
import { priceRows } from "../../lib/prices.ts";
import { sumUsd, toNano } from "../../lib/usd.ts";

const columns: readonly Column<CostLine>[] = [
  { header: "Item", cell: ({ name }) => name },
  { header: "Count", numeric: true, cell: (line) => count(line.count) },
  {
    header: "Price",
    numeric: true,
    cell: ({ priceUsd, unit }) => (
      <span>
        <Money usd={priceUsd} /> <span className="text-muted">/ {unit}</span>
      </span>
    ),
  },
  { header: "Cost", usd: ({ costUsd }) => costUsd },
];

/** The charged amount, calculated from the usage and today's prices. */
export function CostTable({ call }: { readonly call: CallWithAttempts }) {
  const { account } = useAccountSession();
  return (
    <QueryView query={useQuery(modelsQuery)}>
      {(models) => {
        const model = models.find(({ id }) => id === call.model);
        const lines = model ? costLines(call.usage, priceRows(model), account.tier === "elite") : [];
        return (
          <div className="flex flex-col gap-3">
            <Table
              caption="Cost of the request"
              columns={columns}
              rows={lines}
              rowKey={({ key }) => key}
              footer={["Charged", null, null, call.cost_usd]}
            />
            <Note call={call} lines={lines} />
          </div>
        );
      }}
    </QueryView>
  );
}

function Note({ call, lines }: { readonly call: CallWithAttempts; readonly lines: readonly CostLine[] }) {
  const difference = toNano(sumUsd(lines.map(({ costUsd }) => costUsd))) - toNano(call.cost_usd);
  if (call.byok)
    return (
      <p className="text-xs text-muted">
        It ran with your own provider key: the provider charges you, and only a fee was charged here.
        {lines.length > 0 && " The lines show what it would have cost otherwise, at today's prices."}
      </p>
    );
  const why = whyCharged(call);
  const isRounding = difference <= BigInt(lines.length) && difference >= -BigInt(lines.length);
  return (
    <ul className="flex flex-col gap-1 text-xs text-muted">
      {why && <li>{why}</li>}
      {call.refunded && <li>The charge was refunded: your balance has it back.</li>}
      {call.estimated && <li>The provider did not report its usage, so it was counted here.</li>}
      {lines.length > 0 && difference !== 0n && isRounding && <li>The sum is rounded once, at its end.</li>}
      {!isRounding && call.cost_usd !== "0" && (
        <li>
          The lines show today's prices for the counts that have one; the charge is by the prices in force at the time
          of the call, which may differ by size, length of the prompt or tier.
        </li>
      )}
      {toNano(call.cost_usd) === 0n && (
        <li>Nothing was charged: the call failed, was stopped before it began, or is free.</li>
      )}
    </ul>
  );
}
