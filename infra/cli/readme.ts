import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { loadCatalog, upstreamVariables } from "#catalog";
import { errorKinds } from "#errors";
import { formats } from "#formats";
import { environment } from "#platform/config";
import { rows as conversions } from "../../test/support/conversion-rows.ts";
import { type Cell, cellOf } from "../../test/support/conversions.ts";
import { startEnvironment } from "./start-config.ts";

/** The tables of the README that are made from the code. `npm run readme` writes them; a test sees that they are current. */

const file = fileURLToPath(new URL("../../README.md", import.meta.url));

const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

const code = (text: string) => `\`${text}\``;
const cell = (text: string | undefined) => (text ?? "").replaceAll("|", "\\|");

interface Described {
  readonly description?: string | undefined;
  safeParse(value: undefined): { success: boolean; data?: unknown };
}

/** A variable's own default is what an absent value parses to. */
function variables(shape: Readonly<Record<string, Described>>): string[][] {
  return Object.entries(shape).map(([name, schema]) => {
    const absent = schema.safeParse(undefined);
    const initial = typeof absent.data === "string" || typeof absent.data === "number" ? code(`${absent.data}`) : "";
    return [code(name), absent.success ? initial : "**required**", cell(schema.description)];
  });
}

function configuration(): string {
  const upstreams = upstreamVariables(loadCatalog(undefined));
  return table(
    ["variable", "default", "what it is"],
    [
      ...variables(environment.shape),
      ...upstreams.map(({ name, description }) => [code(name), "", cell(description)]),
      ...variables(startEnvironment.shape).map(
        ([name, initial, text]) => [name, initial, `${text} (\`npm start\` only)`] as string[],
      ),
    ],
  );
}

const errors = () =>
  table(
    ["status", "type", "code", "when"],
    Object.entries(errorKinds).map(([name, { status, type, when }]) => [
      `${status}`,
      code(type),
      code(name),
      cell(when),
    ]),
  );

function mark(cell: Cell): string {
  switch (cell.how) {
    case "absent":
      return "";
    case "ignored":
      return cell.name === undefined ? "–" : "○";
    case "refused":
      return "✗";
    case "native":
    case "converted":
      return "✓";
  }
}

function crossed(): string {
  const pairs = formats.flatMap((caller) => formats.map((provider) => ({ caller, provider })));
  return table(
    ["", ...pairs.map(({ caller, provider }) => `${caller} → ${provider}`)],
    conversions.map((row) => [
      row.feature,
      ...pairs.map(({ caller, provider }) => mark(cellOf(row, caller, provider))),
    ]),
  );
}

const parts: Readonly<Record<string, () => string>> = { configuration, errors, conversions: crossed };

/** The README with its tables made anew. Throws if a table has lost its place. */
export function currentReadme(text: string): string {
  return Object.entries(parts).reduce((readme, [name, make]) => {
    const place = new RegExp(`(<!-- ${name} -->\n)[\\s\\S]*?(<!-- /${name} -->)`);
    if (!place.test(readme)) throw new Error(`The README has no place for its table '${name}'.`);
    return readme.replace(place, (_, start: string, end: string) => `${start}${make()}\n${end}`);
  }, text);
}

if (import.meta.main) writeFileSync(file, currentReadme(readFileSync(file, "utf8")));
