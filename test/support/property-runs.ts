import fc from "fast-check";

/** Set by `npm run test:properties`, and for nightly runs of tests that take long. */
export const isFull = process.env["TEST_RUNS"] === "full";

/** How often a property runs: `usual` times in `npm test`, `full` times in `npm run test:properties`. */
export const runs = (full: number, usual = Math.min(full, 200)): number => (isFull ? full : usual);

/** A step of a property with its fields, among others as often as its weight says. */
export const step = <const Name extends string, Fields extends object = object>(
  weight: number,
  name: Name,
  fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> } = {} as never,
) => ({
  weight,
  arbitrary: fc.record({ do: fc.constant(name), ...fields }) as unknown as fc.Arbitrary<{ do: Name } & Fields>,
});
