import { writeFileSync } from "node:fs";
import { loadCatalog, upstreamVariables } from "#catalog";
import { errorKinds } from "#errors";
import { formats } from "#formats";
import { environment } from "#platform/config";
import { startEnvironment } from "../infra/cli/start-config.ts";
import { rows as conversions } from "../test/support/conversion-rows.ts";
import { type Cell, cellOf } from "../test/support/conversions.ts";

/** Writes the pages of `docs/` that are made from the code (`npm run docs`); a unit test checks that they are current. */

const folder = new URL("./", import.meta.url);

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
    const { data } = absent;
    const initial = data === false ? code("off") : ["string", "number"].includes(typeof data) ? code(String(data)) : "";
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

function conversionMatrix(): string {
  const pairs = formats.flatMap((caller) => formats.map((provider) => ({ caller, provider })));
  return table(
    ["", ...pairs.map(({ caller, provider }) => `${caller} → ${provider}`)],
    conversions.map((row) => [
      row.feature,
      ...pairs.map(({ caller, provider }) => mark(cellOf(row, caller, provider))),
    ]),
  );
}

const generated = "<!-- Written by `npm run docs`: do not edit. -->";

/** The text of each generated page, by its file name in `docs/`. */
export const pages = (): Readonly<Record<string, string>> => ({
  "configuration.md": `${generated}

# Configuration

Environment variables of the API and the workers. Unset and empty are the same.

${configuration()}
`,
  "errors.md": `${generated}

# Errors

\`{"error": {"message", "type", "code", "param"}, "request_id"}\`; native formats have their own shapes
([wire details](api/wire-details.md#error-types-by-format)). 429 and 503 carry \`Retry-After\` in whole seconds, 1 to 60.
\`x-should-retry: false\` is sent where repeating cannot help. Inside a stream that has begun, the error is the last event.

${errors()}
`,
  "conversion-matrix.md": `${generated}

# Conversion matrix

What becomes of a feature between the caller's format (before the arrow) and the upstream's: ✓ converted or passed through,
○ omitted and named in \`x-ignored-params\`, – omitted silently, because it is another provider's state or means nothing
there, ✗ refused with 400. Empty: the caller's format has no such feature. \`test/unit/conversion-matrix.test.ts\` proves
every cell, from the same rows.

${conversionMatrix()}
`,
});

if (import.meta.main) for (const [name, text] of Object.entries(pages())) writeFileSync(new URL(name, folder), text);
