import { invalidValue } from "#errors";

/** As many levels as an input may have, and the body around it. */
const deepest = 68;
/** More than any request has, and few enough not to hold up everyone else. */
const mostValues = 100_000;

/** JSON in the one form that all texts of the same value have: no white space, fields in the order of their names. */
export function canonicalJson(body: unknown): string {
  let values = 0;
  const count = (more: number) => {
    values += more;
    if (values > mostValues) throw invalidValue(undefined, `The body has more than ${mostValues} values.`);
  };
  const write = (value: unknown, depth: number): string => {
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    if (depth === deepest) throw invalidValue(undefined, "The body is nested too deep.");
    if (Array.isArray(value)) {
      count(value.length);
      return `[${value.map((each) => write(each, depth + 1)).join(",")}]`;
    }
    const fields = Object.entries(value);
    count(fields.length);
    fields.sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${fields.map(([name, each]) => `${JSON.stringify(name)}:${write(each, depth + 1)}`).join(",")}}`;
  };
  return write(body, 0);
}
