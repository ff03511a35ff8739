import type { Model } from "../../api/models.ts";
import { useAccountSession } from "../../api/session.ts";
import { classNames } from "../../components/class-names.ts";
import { Money } from "../../components/money.tsx";
import { priceRows } from "../../lib/prices.ts";
import { longestRest } from "../../lib/usd.ts";

interface Props {
  readonly model: Model;
  readonly first?: number;
}

const cell = "py-1 ps-3 num";

/** The account's prices: list prices, alongside its own prices for an Elite account. */
export function PriceTable({ model, first }: Props) {
  const { account } = useAccountSession();
  const isElite = account.tier === "elite";
  const rows = priceRows(model).slice(0, first);
  const restDigits = longestRest(rows.flatMap(({ listUsd, eliteUsd }) => (isElite ? [listUsd, eliteUsd] : [listUsd])));
  return (
    <table className="w-full text-xs">
      <caption className="sr-only">Prices of {model.name} in USD</caption>
      <thead className="text-muted">
        <tr>
          <th scope="col" className="py-1 text-start font-medium">
            Item
          </th>
          <th scope="col" className={classNames(cell, "font-medium")}>
            {isElite ? "List" : "Price"}
          </th>
          {isElite && (
            <th scope="col" className={classNames(cell, "font-medium")}>
              Elite
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map(({ key, what, unit, listUsd, eliteUsd }) => (
          <tr key={key} className="border-t border-line">
            <th scope="row" className="py-1 text-start font-normal wrap-anywhere">
              {what ? (
                <>
                  {what} <span className="text-muted">per {unit}</span>
                </>
              ) : (
                `Per ${unit}`
              )}
            </th>
            <td className={classNames(cell, !isElite && "font-semibold")}>
              <Money usd={listUsd} restDigits={restDigits} />
            </td>
            {isElite && (
              <td className={classNames(cell, "font-semibold")}>
                <Money usd={eliteUsd} restDigits={restDigits} />
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
