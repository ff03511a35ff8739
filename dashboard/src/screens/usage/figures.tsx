import type { UsageRow } from "../../api/usage.ts";
import { Figure } from "../../components/card.tsx";
import { before, changeOf, quantities } from "./columns.tsx";

/** The sums of the period, each with that of the period before. */
export const Figures = ({ total }: { readonly total: UsageRow }) => (
  <div className="grid grid-cols-2 gap-4 lg:grid-cols-4">
    {quantities.map((quantity) => (
      <Figure
        key={quantity.name}
        label={quantity.label}
        note={`Before: ${[quantity.text(before(total)), changeOf(quantity, total)].filter(Boolean).join(", ")}`}
      >
        {quantity.shown(total)}
      </Figure>
    ))}
  </div>
);
