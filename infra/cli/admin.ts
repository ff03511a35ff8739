import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { Command } from "commander";
import type { z } from "zod";
import { ConfigError } from "#platform/config-error";
import type { check as ledgerCheck } from "../../api/routes/admin/ledger.ts";
import { type AdminClient, CommandError, createAdminClient, findTarget } from "./admin-client.ts";
import all from "./admin-operations.json" with { type: "json" };
import { addOptions, type Body, type Operation } from "./admin-options.ts";
import { showOverview, watchOverview } from "./admin-overview.ts";
import { type Item, show } from "./admin-print.ts";

/** `npm run admin -- <noun> <verb>`: the admin API for people (tables) and programs (`--json`). */
const program = new Command("admin")
  .description("Manages accounts, keys and balances of a running service, and shows its state.")
  .option("--url <address>", "address of the API (default: ADMIN_URL, or the one that npm start wrote)")
  .option("--token <token>", "an admin token of the API (default: ADMIN_TOKEN, or the one that npm start wrote)")
  .option("--json", "print the response as JSON")
  .helpCommand(false)
  .showHelpAfterError("Use --help to see the usage.");

type Show = (answer: Item) => string;

const textOf = (answer: Item, show: Show) =>
  program.opts().json ? `${JSON.stringify(answer, null, 2)}\n` : show(answer);
const print = (answer: Item, show: Show) => void process.stdout.write(textOf(answer, show));

/** Reports progress on stderr, so that stdout contains only the response. A terminal shows it in place. */
const report = (text: string) => void process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${text.trimEnd()}` : text);
const endReport = () => void (process.stderr.isTTY && process.stderr.write("\r\u001b[K"));

/** Polls once a second until a worker has restored the month, or has removed the restored entries. */
async function untilDone(send: AdminClient, path: string, first: Item): Promise<Item> {
  const isUnderWay = ({ restore }: Item) =>
    ["restoring", "removing"].includes((restore as { state: string } | null)?.state ?? "");
  let answer = first;
  for (let shown = ""; isUnderWay(answer); answer = await send("GET", path)) {
    const progress = show.progress(answer);
    if (progress !== shown) report(progress);
    shown = progress;
    await setTimeout(1_000);
  }
  endReport();
  return answer;
}

const operations: Readonly<Record<keyof typeof all, Operation>> = all;

/** A parsed command: its operation, the path and input of the request, and the command's options. */
interface Given {
  readonly send: AdminClient;
  readonly operation: Operation;
  readonly path: string;
  readonly input: Body;
  readonly options: Body;
  readonly show: Show;
}

const answerTo = ({ send, operation, path, input }: Given) =>
  send(operation.method as Parameters<AdminClient>[0], path, input);
const printAnswer = async (given: Given) => print(await answerTo(given), given.show);

async function addCredit(given: Given): Promise<void> {
  const input = { idempotency_key: randomUUID(), ...given.input };
  try {
    await printAnswer({ ...given, input });
  } catch (error) {
    if (error instanceof CommandError && (error.status ?? 500) >= 500)
      error.message += `\nThe credit may have been added. To repeat the command safely, add --idempotency-key ${input.idempotency_key}`;
    throw error;
  }
}

/** Thousands of accounts per request, so that each request completes within seconds. */
const checkPages = 5;

type CheckedPart = z.input<typeof ledgerCheck>;

/** Imported lazily, because it takes long and only a check of several parts needs it. */
async function addUsd(a: string, b: string): Promise<string> {
  const { formatUsd, parseUsd } = await import("#money");
  return formatUsd((parseUsd(a) ?? 0n) + (parseUsd(b) ?? 0n));
}

/** Checks the ledger part by part. Reports progress after every part except the last. */
async function checkLedger(send: AdminClient, full: boolean): Promise<Item> {
  const read = async (after?: string) =>
    (await send("GET", "/ledger/check", { ...(full && { full }), pages: checkPages, after })) as unknown as CheckedPart;
  let sum = await read();
  for (let { next } = sum; next !== null; ) {
    report(`${sum.accounts} of about ${sum.of_accounts} accounts\n`);
    const part: CheckedPart = await read(next);
    sum = {
      ...part,
      ok: sum.ok && part.ok,
      difference_usd: await addUsd(sum.difference_usd, part.difference_usd),
      accounts: sum.accounts + part.accounts,
      open_holds: sum.open_holds + part.open_holds,
      overdue_holds: sum.overdue_holds + part.overdue_holds,
      oldest_open_hold_seconds: Math.max(sum.oldest_open_hold_seconds, part.oldest_open_hold_seconds),
      undecided: sum.undecided + part.undecided,
    };
    next = part.next;
  }
  const { of_accounts: _all, next: _next, ...checked } = sum;
  return checked;
}

async function check({ send, input }: Given): Promise<void> {
  const checked = await checkLedger(send, input["full"] === true);
  endReport();
  print(checked, show.check);
  if (checked["ok"] !== true) process.exitCode = 1;
}

async function restore(given: Given): Promise<void> {
  const answer = await answerTo(given);
  const month = given.path.replace(/\/restore$/, "");
  print(given.options["wait"] === true ? await untilDone(given.send, month, answer) : answer, given.show);
}

async function overview(given: Given): Promise<void> {
  if (given.options["watch"] !== true) return printAnswer(given);
  await watchOverview(
    () => answerTo(given),
    (answer) => textOf(answer, showOverview),
  );
}

interface Special {
  readonly run?: (given: Given) => Promise<void>;
  /** An option in addition to those of the operation. */
  readonly option?: readonly [flags: string, description: string];
  /** Fields that get no option. */
  readonly without?: readonly string[];
  /** Replaces the description of the operation. */
  readonly text?: string;
}

const wait = ["--no-wait", "do not wait until a worker has finished"] as const;

/** The arguments are the id in the path and an amount. Everything else about a command follows from its operation. */
const commands: Readonly<Record<string, readonly [operation: keyof typeof all, show: Show, special?: Special]>> = {
  "accounts create": ["createAccount", show.account],
  "accounts list": ["listAccounts", show.accounts],
  "accounts get <account>": ["getAccount", show.account],
  "accounts update <account>": ["updateAccount", show.account],
  "credits add <account> <usd>": ["createCredit", show.entry, { run: addCredit }],
  "keys create <account>": ["createKey", show.newKey],
  "keys update <key>": ["updateKey", show.key],
  "keys list <account>": ["listKeys", show.keys],
  "keys revoke <key>": ["revokeKey", show.key],
  "keys sign-in <key>": ["createSignInLink", show.signInLink],
  "ledger list <account>": ["listEntries", show.entries],
  "ledger check": [
    "checkLedger",
    show.check,
    { run: check, without: ["pages", "after"], text: "The exit code is 1 if they differ." },
  ],
  "usage list": ["listServiceUsage", show.usage],
  "requests list": ["listRequests", show.requests],
  "requests get <request>": ["getRequest", show.request],
  "lost list": ["listLostResponses", show.lostResponses],
  "lost refund <request>": ["refundLostResponse", show.lostResponse],
  "lost keep <request>": ["keepLostResponse", show.lostResponse],
  "archive list": ["listArchives", show.archives],
  "archive restore <month>": ["restoreArchive", show.archive, { run: restore, option: wait }],
  "archive remove <month>": ["removeRestored", show.archive, { run: restore, option: wait }],
  overview: [
    "getOverview",
    showOverview,
    { run: overview, option: ["--watch", "refresh every 2 seconds, until Ctrl-C"] },
  ],
  "workers list": ["listWorkers", show.workers],
  "upstreams list": ["listUpstreams", show.upstreams],
  "jobs list": ["listJobQueues", show.jobQueues],
  "batches list": ["listOpenBatches", show.openBatches],
  "batches cancel <batch>": ["cancelAccountBatch", show.openBatch],
  "events list": ["listOperatorEvents", show.events],
  "webhooks failing": ["listFailingWebhooks", show.failingWebhooks],
  "provider-keys list <account>": ["listAccountProviderKeys", show.providerKeys],
  "secrets get": ["getSealedSecrets", show.secrets],
  "secrets rewrap": ["rewrapSecrets", show.secrets],
  "holds list": ["listHolds", show.holds],
  "audit list": ["listAuditRecords", show.records],
  "owed list": ["listOwed", show.owed],
  "owed total": ["getOwedTotal", show.owedTotal],
  "owed refund <payment> <usd>": ["recordRefund", show.entry],
  "buyback accruals": ["listAccruals", show.accruals],
  "buyback batches": ["listBatches", show.batches],
};

const groups: Readonly<Record<string, string>> = {
  accounts: "owners of balances and keys",
  credits: "additions to balances",
  keys: "API keys and their limits",
  ledger: "movements of balances",
  requests: "calls that ended",
  lost: "charged responses that were lost with an API instance",
  archive: "months of the ledger that were moved to object storage",
  workers: "worker processes",
  upstreams: "configured endpoints of providers",
  jobs: "calls that run without their caller",
  batches: "files of calls that run when workers are idle",
  events: "upstreams that failed and recovered",
  webhooks: "endpoints of accounts that receive events",
  "provider-keys": "customers' own keys for providers",
  secrets: "secrets of customers, which are sealed",
  holds: "open holds and leases of running calls",
  audit: "changes by operators",
  owed: "unused amounts of x402 payments",
  buyback: "shares of charges that buy tokens",
};
const parents = new Map(
  Object.entries(groups).map(([name, text]) => [name, program.command(name).description(text)] as const),
);

for (const [name, [id, show, { run = printAnswer, option, text, without = [] } = {}]] of Object.entries(commands)) {
  const [group = "", ...rest] = name.split(" ");
  const parent = parents.get(group);
  const command = parent ? parent.command(rest.join(" ")) : program.command(name);
  const operation = operations[id];
  const isAmount = name.includes("<usd>");
  const inputOf = addOptions(command, operation, [...without, ...(isAmount ? ["amount_usd"] : [])]);
  command.description([operation.summary, text ?? operation.description].filter(Boolean).join(". "));
  if (option) command.option(...option);
  command.action(async () => {
    const [pathId = "", usd] = command.args;
    const options: Body = command.opts();
    await run({
      send: createAdminClient(findTarget(program.opts(), process.env)),
      operation,
      path: operation.path.replace("{id}", encodeURIComponent(pathId)),
      input: { ...(isAmount && { amount_usd: usd }), ...inputOf(options) },
      options,
      show,
    });
  });
}

try {
  await program.parseAsync();
} catch (error) {
  const known = error instanceof CommandError || error instanceof ConfigError;
  process.stderr.write(`${known ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
