import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { Command, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "#platform/config";
import { checkLedger } from "./admin-check.ts";
import { type AdminClient, CommandError, createAdminClient, findTarget } from "./admin-client.ts";
import { showOverview, watchOverview } from "./admin-overview.ts";
import { type Item, show } from "./admin-print.ts";

/** `npm run admin -- <noun> <verb>`: the admin interface for people (tables) and programs (`--json`). */
const program = new Command("admin")
  .description("Accounts, keys, balances and the state of a running service.")
  .option("--url <address>", "address of the API (default: ADMIN_URL, else what npm start wrote)")
  .option("--token <token>", "its ADMIN_TOKEN (default: ADMIN_TOKEN, else what npm start wrote)")
  .option("--json", "print the answer as JSON")
  .helpCommand(false)
  .showHelpAfterError("Add --help for the usage.");

type Show = (answer: Item) => string;
type Body = Readonly<Record<string, unknown>>;

const client = () => createAdminClient(findTarget(program.opts(), process.env));

const textOf = (answer: Item, show: Show) =>
  program.opts().json ? `${JSON.stringify(answer, null, 2)}\n` : show(answer);
const print = (answer: Item, show: Show) => void process.stdout.write(textOf(answer, show));

/** How far long work is: not a part of the answer, so on stderr; on a terminal in place. */
const report = (text: string) => void process.stderr.write(process.stderr.isTTY ? `\r\u001b[K${text.trimEnd()}` : text);
const endReport = () => void (process.stderr.isTTY && process.stderr.write("\r\u001b[K"));

/** Options by the admin API's names. */
const fieldsOf = (options: Body): Body =>
  Object.fromEntries(
    Object.entries(options).map(([name, value]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );

/** A command's action. Its first argument is the path's id, its second an amount, and its options are the other input. */
const action = (method: Parameters<AdminClient>[0], path: string, show: Show, inputOf = fieldsOf) =>
  async function run(this: Command): Promise<void> {
    const [id = "", usd] = this.args;
    const input = { ...(usd !== undefined && { amount_usd: usd }), ...inputOf(this.opts()) };
    print(await client()(method, path.replace(":id", encodeURIComponent(id)), input), show);
  };

function wholeNumber(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("It must be a positive whole number.");
  return Number(text);
}
const wholeNumberOrDefault = (text: string) => (text === "default" ? text : wholeNumber(text));

/** `5/day`. */
function budgetOf(text: string): object {
  const [, usd, period] = /^(\d+(?:\.\d+)?)\/(day|week|month|total)$/.exec(text) ?? [];
  if (usd === undefined) throw new InvalidArgumentError("It must be like 5/day, 20/week, 50/month or 100/total.");
  return { limit_usd: usd, period };
}

/** A day lasts to its end, in UTC. */
function unixSecondsOf(text: string): number {
  const ms = Date.parse(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59Z` : text);
  if (Number.isNaN(ms)) throw new InvalidArgumentError("It must be a day, or a time in ISO 8601.");
  return Math.floor(ms / 1_000);
}

const each = (value: string, before: readonly string[] = []) => [...before, value];

/** What is not named here is a limit. */
function keyOf({ name, scope: scopes, model, budget, expires, ...options }: Body): Body {
  const limits = Object.entries(fieldsOf(options)).map(([field, limit]) => [field, limit === "default" ? null : limit]);
  return {
    name,
    scopes,
    // `--no-model` and so on make these false.
    models: model === false ? null : model,
    budget: budget === false ? null : budget,
    expires_at: expires === false ? null : expires,
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
  };
}

/** Asks once a second until a worker has restored the month, or removed what was restored. */
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

const paged = (command: Command) =>
  command.option("--limit <count>", "how many, 1 to 200").option("--after <id>", "those after this one");
const tier = () => new Option("--tier <tier>", "price tier").choices(["standard", "elite"]);
const name = ["--name <name>", "name for people"] as const;
const buybackToken = ["--buyback-token <mint>", "token mint that its buybacks go to"] as const;
const reason = ["--reason <reason>", "stored in the ledger"] as const;

const accounts = program.command("accounts").description("the owners of balances and keys");
accounts
  .command("create")
  .requiredOption(...name)
  .addOption(tier())
  .option(...buybackToken)
  .action(action("POST", "/accounts", show.account));
paged(accounts.command("list"))
  .option("--search <text>", "an id, or the beginning of names")
  .action(action("GET", "/accounts", show.accounts));
accounts.command("get <account>").action(action("GET", "/accounts/:id", show.account));
accounts
  .command("update <account>")
  .option(...name)
  .addOption(tier())
  .option(...buybackToken)
  .option("--no-buyback-token", "remove the buyback token")
  .addOption(new Option("--freeze", "refuse its calls").conflicts("unfreeze"))
  .option("--unfreeze", "accept its calls again")
  .action(
    action("PATCH", "/accounts/:id", show.account, ({ freeze, unfreeze, buybackToken, ...others }) => ({
      ...others,
      ...(buybackToken !== undefined && { buyback_token: buybackToken === false ? null : buybackToken }),
      ...((freeze === true || unfreeze === true) && { frozen: freeze === true }),
    })),
  );

program
  .command("credits")
  .description("additions to balances")
  .command("add <account> <usd>")
  .description("adds to the balance; a negative amount subtracts")
  .option("--idempotency-key <key>", "one key adds once, however often it is sent (default: a new one)")
  .option(...reason)
  .action(async function add(this: Command) {
    const { idempotencyKey = randomUUID(), reason } = this.opts();
    const inputOf = () => ({ idempotency_key: idempotencyKey, reason });
    try {
      await action("POST", "/accounts/:id/credits", show.entry, inputOf).call(this);
    } catch (error) {
      if (error instanceof CommandError && (error.status ?? 500) >= 500)
        error.message += `\nThe credit may have been added. To repeat it safely: --idempotency-key ${idempotencyKey}`;
      throw error;
    }
  });

const keys = program.command("keys").description("API keys and their limits");
const create = keys.command("create <account>").option(...name);
const update = keys.command("update <key>").option(...name);
for (const command of [create, update])
  command
    .option("--scope <scope>", "inference (default) or manage; more than once for both", each)
    .option("--model <model>", "a model that it may call, or 'provider/*'; more than once for several", each)
    .option("--budget <usd/period>", "what its calls may cost in a day, week, month or in total: 5/day", budgetOf)
    .option("--expires <time>", "a day in UTC, or a time", unixSecondsOf);
update
  .option("--no-model", "it may call all models")
  .option("--no-budget", "it has no budget")
  .option("--no-expires", "it does not expire");
for (const limit of ["requests-per-minute", "tokens-per-minute", "concurrent-requests"]) {
  create.option(`--${limit} <count>`, "instead of the configured limit", wholeNumber);
  update.option(`--${limit} <count>`, "instead of the configured limit; 'default' removes it", wholeNumberOrDefault);
}
create.action(action("POST", "/accounts/:id/keys", show.newKey, keyOf));
update.action(action("PATCH", "/keys/:id", show.key, keyOf));
paged(keys.command("list <account>")).action(action("GET", "/accounts/:id/keys", show.keys));
keys.command("revoke <key>").action(action("DELETE", "/keys/:id", show.key));

const ledger = program.command("ledger").description("movements of balances");
paged(
  ledger
    .command("list <account>")
    .option("--kind <kind>", "only entries of this kind")
    .option("--restored", "those that were restored from the archive"),
).action(
  action("GET", "/accounts/:id/ledger", show.entries, ({ restored, ...options }) => ({
    ...options,
    ...(restored === true && { restored }),
  })),
);
ledger
  .command("check")
  .description("compares credits less costs with the accounts' balances; exit code 1 if they differ")
  .option("--full", "reads every entry, not only those since the last checkpoint")
  .action(async ({ full }: Body) => {
    const check = await checkLedger(client(), full === true, report);
    endReport();
    print(check, show.check);
    if (check["ok"] !== true) process.exitCode = 1;
  });

program
  .command("requests")
  .description("single calls")
  .command("get <request>")
  .description("one call by its x-request-id: model, upstream, times, usage and cost")
  .action(action("GET", "/requests/:id", show.request));

const archive = program.command("archive").description("months of the ledger that were moved to storage");
paged(archive.command("list").description("months, newest first")).action(action("GET", "/archives", show.archives));
archive
  .command("restore <month>")
  .description("copies a month's entries back, for `requests get` and `ledger list --restored`; no balance changes")
  .option("--account <account>", "only the entries of this account")
  .option("--no-wait", "does not wait until a worker has done it")
  .action(async (month: string, { account, wait }: Body) => {
    const path = `/archives/${encodeURIComponent(month)}`;
    const send = client();
    const answer = await send("POST", `${path}/restore`, { account });
    print(wait === true ? await untilDone(send, path, answer) : answer, show.archive);
  });
archive
  .command("remove <month>")
  .description("removes what was restored")
  .option("--no-wait", "does not wait until a worker has done it")
  .action(async (month: string, { wait }: Body) => {
    const path = `/archives/${encodeURIComponent(month)}`;
    const send = client();
    const answer = await send("DELETE", `${path}/restore`);
    print(wait === true ? await untilDone(send, path, answer) : answer, show.archive);
  });

program
  .command("overview")
  .description("calls, pools, upstreams, stores and money at a glance")
  .option("--watch", "shows it again every 2 seconds, until Ctrl-C")
  .action(async ({ watch }: Body) => {
    const send = client();
    const read = () => send("GET", "/overview");
    if (watch === true) await watchOverview(read, (answer) => textOf(answer, showOverview));
    else print(await read(), showOverview);
  });
program
  .command("workers")
  .description("worker processes")
  .command("list")
  .action(action("GET", "/workers", show.workers));
program
  .command("upstreams")
  .description("configured endpoints of providers")
  .command("list")
  .action(action("GET", "/upstreams", show.upstreams));
paged(program.command("holds").description("what is held for calls that run").command("list"))
  .description("holds and leases, oldest first")
  .action(action("GET", "/holds", show.holds));

/** A date in UTC, or unix seconds. */
function unixTime(text: string): number {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(/T/.test(text) ? text : `${text}T00:00:00Z`);
  if (Number.isNaN(ms))
    throw new InvalidArgumentError("It must be a date such as 2026-01-31, a time, or unix seconds.");
  return Math.floor(ms / 1_000);
}
paged(program.command("audit").description("changes by operators").command("list"))
  .description("newest first")
  .option("--who <name>", "of this operator")
  .option("--action <action>", "such as 'POST /accounts/{id}/credits'")
  .option("--target <id>", "of this account, key or other id")
  .option("--from <date>", "not before this", unixTime)
  .option("--to <date>", "before this", unixTime)
  .action(action("GET", "/audit", show.records));

const over = ["--over", "only what its payer can no longer use"] as const;
const owed = program.command("owed").description("unused amounts of x402 payments");
paged(owed.command("list"))
  .option(...over)
  .action(action("GET", "/owed", show.owed));
owed
  .command("total")
  .option(...over)
  .action(action("GET", "/owed/total", show.owedTotal));
owed
  .command("refund <payment> <usd>")
  .description("records what was paid back on chain; one transaction counts once")
  .requiredOption("--transaction <signature>", "the transaction that paid it back")
  .option(...reason)
  .action(action("POST", "/owed/:id/refunds", show.entry));

const buyback = program.command("buyback").description("shares of charges that buy tokens");
buyback
  .command("accruals")
  .description("by token, amounts that are not in a batch yet")
  .action(action("GET", "/buyback/accruals", show.accruals));
paged(buyback.command("batches").description("purchases, newest first")).action(
  action("GET", "/buyback/batches", show.batches),
);

try {
  await program.parseAsync();
} catch (error) {
  const known = error instanceof CommandError || error instanceof ConfigError;
  process.stderr.write(`${known ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
