import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { ServiceError } from "#errors";

/** One case of test/fixtures; docs/adding/conversion-case.md describes its fields. */
export interface Fixture {
  readonly format: string;
  readonly direction: string;
  readonly name: string;
  readonly expected?: unknown;
  readonly contains?: object;
  readonly ignored?: readonly string[];
  /** Every refusal is a 400 with the code `invalid_value`. Without `param` it concerns the whole body. */
  readonly refused?: { readonly param?: string; readonly message?: string };
}

const folder = fileURLToPath(new URL("../fixtures", import.meta.url));

/** `{"$matches": "..."}` stands for a text that matches the regular expression. */
const revive = (_: string, value: unknown): unknown => {
  const pattern = (value as { $matches?: string } | null)?.$matches;
  return pattern === undefined ? value : (expect.stringMatching(new RegExp(pattern)) as unknown);
};

/** The cases in `<format>/<kind>-<direction>.json` and `<format>/<kind>-<direction>-<subject>.json`. */
export function fixtures<Case, Run>(
  kind: "request" | "answer" | "stream",
  directions: Readonly<Record<string, Run>>,
): readonly (Case & Fixture & { readonly run: Run })[] {
  const all = readdirSync(folder, { recursive: true, encoding: "utf8" }).toSorted();
  const files = all.filter((file) => file.includes(`/${kind}-`));
  return files.flatMap((file) => {
    const [format = "", name = ""] = file.replace(".json", "").split("/");
    const given = name.slice(kind.length + 1);
    const found = Object.entries(directions).find(([each]) => given === each || given.startsWith(`${each}-`));
    if (!found) throw new Error(`test/fixtures/${file} has no known direction.`);
    const [direction, run] = found;
    const cases = JSON.parse(readFileSync(join(folder, file), "utf8"), revive) as (Case & Fixture)[];
    return cases.map((each) => ({ ...each, format, direction, run }));
  });
}

/** The result of a conversion: what it returned, and the names of the parameters that it ignored. */
export interface Outcome {
  readonly result: unknown;
  readonly ignored?: readonly string[];
}

/** The result of the case or its refusal, as `wanted` has it. */
export function outcomeOf({ contains }: Fixture, convert: () => Outcome): unknown {
  try {
    const { result = null, ignored = [] } = convert();
    return { result: contains ? within(result, contains) : result, ignored };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, status, param, message } = error;
    return { code, status, param, message };
  }
}

export function wanted({ expected, contains, ignored = [], refused }: Fixture): unknown {
  if (!refused) return { result: contains ?? expected, ignored };
  const { param, message = param ?? "The body is not valid" } = refused;
  return { code: "invalid_value", status: 400, param, message: expect.stringContaining(message) as unknown };
}

/** The value with those fields only that another has. */
function within(value: unknown, other: unknown): unknown {
  if (Array.isArray(value) && Array.isArray(other)) return value.map((each, at) => within(each, other[at]));
  if (typeof value !== "object" || value === null || typeof other !== "object" || other === null) return value;
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.entries(other).map(([name, each]) => [name, within(fields[name], each)]));
}
