import { expect, test } from "vitest";
import { formats } from "#formats";
import { rows } from "../support/crossing-rows.ts";
import { type Cell, cellOf, has, made, madeWithout } from "../support/crossings.ts";

const cells = rows.flatMap((row) =>
  formats.flatMap((caller) =>
    formats.map((maker) => ({ row, feature: row.feature, caller, maker, cell: cellOf(row, caller, maker) })),
  ),
);
const having = <H extends Cell["how"]>(...how: H[]) =>
  cells.flatMap(({ cell, ...rest }) =>
    how.includes(cell.how as H) ? [{ ...rest, cell: cell as Extract<Cell, { how: H }> }] : [],
  );

test.each(having("crosses"))("$feature: of a $caller caller a $maker maker gets it", ({ row, caller, maker }) => {
  const { request, ignored } = made(row, caller, maker);
  expect(row.got[maker]).toBeDefined();
  expect(has(request, row.got[maker])).toBe(true);
  expect(ignored).toEqual([]);
  // Else it would be there without being asked for.
  expect(request).not.toEqual(madeWithout(row, caller, maker).request);
});

test.each(having("native"))(
  "$feature: of a $caller caller a $maker maker gets it as it is",
  ({ row, caller, maker }) => {
    expect(has(made(row, caller, maker).request, row.ask[caller])).toBe(true);
  },
);

test.each(having("left out"))(
  "$feature: of a $caller caller a $maker maker does not hear",
  ({ row, caller, maker, cell }) => {
    const { request, ignored } = made(row, caller, maker);
    expect(ignored).toEqual(cell.name === undefined ? [] : [cell.name]);
    expect(request).toEqual(madeWithout(row, caller, maker).request);
  },
);

test.each(having("refused"))(
  "$feature: of a $caller caller, for a $maker maker, is refused by its name",
  ({ row, caller, maker, cell }) => {
    expect(() => made(row, caller, maker)).toThrow(
      expect.objectContaining({ status: 400, code: "invalid_value", param: cell.field }),
    );
    expect(() => made(row, caller, maker)).toThrow(cell.field);
  },
);
