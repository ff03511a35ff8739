import { readFileSync, writeFileSync } from "node:fs";
import { loadCatalog, upstreamVariables } from "#catalog";
import { type ErrorCode, errorKinds } from "#errors";
import { formats } from "#formats";
import { environment, secretVariables } from "#platform/config";
import { metricList } from "#platform/observability/metrics";
import { errorAdvice } from "../api/routes/account/error-advice.ts";
import { startEnvironment } from "../infra/cli/start-config.ts";
import { valuesSchema } from "../infra/k8s/values-schema.ts";
import { type Cell, cellOf, rows as conversions } from "../test/support/conversions.ts";
import { adminOperations } from "./admin-operations.ts";

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
  const secrets = [...secretVariables, ...upstreams.flatMap(({ name, secret }) => (secret ? [name] : []))].map(code);
  return table(
    ["variable", "default", "file", "what it is"],
    [
      ...variables(environment.shape),
      ...upstreams.map(({ name, description }) => [code(name), "", cell(description)]),
      ...variables(startEnvironment.shape).map(
        ([name, initial, text]) => [name, initial, `${text} (\`npm start\` only)`] as string[],
      ),
    ].map(([name = "", initial = "", text = ""]) => [name, initial, secrets.includes(name) ? "yes" : "", text]),
  );
}

const errors = () =>
  table(
    ["status", "type", "code", "when", "what to do"],
    Object.entries(errorKinds).map(([name, { status, type, when }]) => [
      `${status}`,
      code(type),
      code(name),
      cell(when),
      cell(errorAdvice[name as ErrorCode]),
    ]),
  );

const metrics = () =>
  table(
    ["metric", "type", "labels", "processes", "what it is"],
    Object.entries(metricList)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, { type, labels, of, help }]) => [
        code(name),
        type,
        labels.map(code).join(", "),
        of.join(", "),
        cell(help),
      ]),
  );

function mark(cell: Cell): string {
  switch (cell.how) {
    case "absent":
      return "";
    case "ignored":
      return cell.name === null ? "–" : "○";
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

Secrets, for which the column "file" says yes, may also come from a file: \`ADMIN_TOKEN_FILE=/run/secrets/admin_token\` in place of
\`ADMIN_TOKEN\`. The whole file is the value, but for one newline at its end. A process reads files once, when it starts, and
does not start if both variables are set, or if the file is empty or cannot be read. \`CATALOG_FILE\` and
\`CATALOG_OVERLAY\` are paths, not secrets.

\`npm run config -- check\` loads the environment as an API and as a worker do, without connecting to anything. It shows what is
set (secrets masked), which upstreams have a key, names that nothing reads and that look like typos, and every fault, and exits
with 1 if there is any. \`--process api\` or \`--process worker\` checks for one kind of process; \`--json\` prints the same for
programs.

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
  "operations/metrics.md": `${generated}

# Metrics

Every process serves \`/metrics\` in Prometheus' text format on \`METRICS_PORT\` (9464), apart from the API's port: do not
publish it. Under \`npm start\` each process has a free port, and \`metrics\` in \`.data/demo.json\` has the
addresses (\`api\`, \`worker\`, \`worker_2\` ...).

\`\`\`yaml
scrape_configs:
  - job_name: inference
    dns_sd_configs:
      - { names: [api, worker], type: A, port: 9464 }
\`\`\`

${metrics()}

## How to read them

- Every API instance sees all workers and queues: for \`inference_pool_...\` take the \`max\` over instances, not the sum.
- The same holds for what is stored: \`inference_holds_...\`, \`inference_lease...\`, \`inference_ledger_...\`, \`inference_uploads\`,
  \`inference_file_expiry_lag_seconds\`, \`inference_buyback_batches\`, \`inference_undecided_calls\`,
  \`inference_batch_oldest_seconds\`, \`inference_batch_stalled_seconds\`. A worker that serves the \`maintenance\` pool counts it every
  15 s, with bounds, and every API instance shows that. Without such a worker they are absent after two minutes ([why](../adr/0015-cluster-stats.md)).
- The ledger is checked from its checkpoints, 20,000 accounts every 30 s, over and over. A difference shows as soon as it is
  found and until a later pass over all accounts finds none. Which accounts: \`npm run admin -- ledger check\`, and the log.
- \`inference_call_duration_seconds\` = \`inference_overhead_seconds\` + time at upstreams. If a call is slow, compare
  the overhead with \`inference_upstream_first_byte_seconds\` and \`inference_upstream_attempt_seconds\`; within the overhead
  with \`inference_queue_wait_seconds\`, \`inference_group_write_seconds\` and \`nodejs_eventloop_lag_p99_seconds\`.
- \`inference_charged_nanousd_total\` is what calls were charged; refunds are not taken off. The ledger has the exact sums.
- A group of 1 is a quiet service; groups grow with the load, so that a store is asked less often for each call.
- Values are gathered when they are scraped. Scrapes that come together share one gathering. What a store has to say is
  absent while the store does not answer; the rest of the scrape is not.
- Labels have values from fixed lists and the catalog only, else \`other\`, so callers cannot add series. The largest metric,
  \`inference_call_duration_seconds\`, has 15 series for each model at each endpoint that was used.
- Node's own metrics (\`process_...\`, \`nodejs_...\`: processor time, memory, event loop delay, garbage collection) have the
  names of the [Prometheus client](https://github.com/prometheus/client_js), so that the usual dashboards work. The event loop
  delay is sampled every 50 ms and includes that interval.

## Alerts and dashboards

The dashboards in \`infra/observability/dashboards\` show all of these; the alerts of \`infra/observability/alerts.yml\` are
explained in the [runbook](runbook.md).
`,
  "../infra/cli/admin-operations.json": `${JSON.stringify(adminOperations(), null, 1)}\n`,
  "../infra/k8s/chart/values.schema.json": `${JSON.stringify(valuesSchema, null, 2)}\n`,
  // Helm reads no files outside of the chart.
  "../infra/k8s/chart/files/alerts.yml": readFileSync(
    new URL("../infra/observability/alerts.yml", import.meta.url),
    "utf8",
  ),
});

if (import.meta.main) for (const [name, text] of Object.entries(pages())) writeFileSync(new URL(name, folder), text);
