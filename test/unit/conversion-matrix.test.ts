import { expect, test } from "vitest";
import { formats } from "#formats";
import { type Cell, cellOf, has, rows, sentRequest, sentWithout } from "../support/conversions.ts";

const cells = rows.flatMap((row) =>
  formats.flatMap((caller) =>
    formats.map((provider) => ({ row, feature: row.feature, caller, provider, cell: cellOf(row, caller, provider) })),
  ),
);
const having = <H extends Cell["how"]>(...how: H[]) =>
  cells.flatMap(({ cell, ...rest }) =>
    how.includes(cell.how as H) ? [{ ...rest, cell: cell as Extract<Cell, { how: H }> }] : [],
  );

test.each(having("converted"))("$feature: converted from $caller to $provider", ({ row, caller, provider }) => {
  const { request, ignored } = sentRequest(row, caller, provider);
  const expected = row.converted?.[provider] ?? row.requests[provider];
  expect(expected).toBeDefined();
  expect(has(request, expected)).toBe(true);
  expect(ignored).toEqual([]);
  // Otherwise the request would contain it anyway.
  expect(request).not.toEqual(sentWithout(row, caller, provider).request);
});

test.each(having("native"))("$feature: unchanged from $caller to $provider", ({ row, caller, provider }) => {
  expect(has(sentRequest(row, caller, provider).request, row.requests[caller])).toBe(true);
});

test.each(having("ignored"))("$feature: ignored from $caller to $provider", ({ row, caller, provider, cell }) => {
  const { request, ignored } = sentRequest(row, caller, provider);
  expect(ignored).toEqual(cell.name === null ? [] : [cell.name]);
  expect(request).toEqual(sentWithout(row, caller, provider).request);
});

test.each(having("refused"))(
  "$feature: refused from $caller to $provider, naming the field",
  ({ row, caller, provider, cell }) => {
    expect(() => sentRequest(row, caller, provider)).toThrow(
      expect.objectContaining({ status: 400, code: "invalid_value", param: cell.field }),
    );
    expect(() => sentRequest(row, caller, provider)).toThrow(cell.field);
  },
);
