import { expect, test } from "vitest";
import { formats } from "#formats";
import { rows } from "../support/conversion-rows.ts";
import { type Cell, cellOf, has, made, madeWithout } from "../support/conversions.ts";

const cells = rows.flatMap((row) =>
  formats.flatMap((caller) =>
    formats.map((provider) => ({ row, feature: row.feature, caller, provider, cell: cellOf(row, caller, provider) })),
  ),
);
const having = <H extends Cell["how"]>(...how: H[]) =>
  cells.flatMap(({ cell, ...rest }) =>
    how.includes(cell.how as H) ? [{ ...rest, cell: cell as Extract<Cell, { how: H }> }] : [],
  );

test.each(having("crosses"))(
  "$feature: of a $caller caller a $provider provider gets it",
  ({ row, caller, provider }) => {
    const { request, ignored } = made(row, caller, provider);
    expect(row.got[provider]).toBeDefined();
    expect(has(request, row.got[provider])).toBe(true);
    expect(ignored).toEqual([]);
    // Else it would be there without being asked for.
    expect(request).not.toEqual(madeWithout(row, caller, provider).request);
  },
);

test.each(having("native"))(
  "$feature: of a $caller caller a $provider provider gets it as it is",
  ({ row, caller, provider }) => {
    expect(has(made(row, caller, provider).request, row.ask[caller])).toBe(true);
  },
);

test.each(having("left out"))(
  "$feature: of a $caller caller a $provider provider does not hear",
  ({ row, caller, provider, cell }) => {
    const { request, ignored } = made(row, caller, provider);
    expect(ignored).toEqual(cell.name === undefined ? [] : [cell.name]);
    expect(request).toEqual(madeWithout(row, caller, provider).request);
  },
);

test.each(having("refused"))(
  "$feature: of a $caller caller, for a $provider provider, is refused by its name",
  ({ row, caller, provider, cell }) => {
    expect(() => made(row, caller, provider)).toThrow(
      expect.objectContaining({ status: 400, code: "invalid_value", param: cell.field }),
    );
    expect(() => made(row, caller, provider)).toThrow(cell.field);
  },
);
