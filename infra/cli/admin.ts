import { randomUUID } from "node:crypto";
import { Command, InvalidArgumentError, Option } from "commander";
import { type AdminClient, CommandError, createAdminClient, findTarget, type Query } from "./admin-client.ts";
import { type Item, show } from "./admin-print.ts";

/** `npm run admin -- <noun> <verb>`: the admin interface for people (tables) and programs (`--json`). */
const program = new Command("admin")
  .description("Accounts, keys and balances of a running service.")
  .option("--url <address>", "address of the API (default: ADMIN_URL, else what npm start wrote)")
  .option("--token <token>", "its ADMIN_TOKEN (default: ADMIN_TOKEN, else what npm start wrote)")
  .option("--json", "print the answer as JSON")
  .helpCommand(false)
  .showHelpAfterError("Add --help for the usage.");

const client = (): AdminClient => createAdminClient(findTarget(program.opts(), process.env));

type Show = (answer: Item) => string;

function print(answer: Item, show: Show): void {
  process.stdout.write(program.opts().json ? `${JSON.stringify(answer, null, 2)}\n` : show(answer));
}

const get = async (path: string, show: Show, query?: Query) => print(await client().get(path, query), show);
const send = async (method: "POST" | "PATCH" | "DELETE", path: string, body: object | undefined, show: Show) =>
  print(await client().send(method, path, body), show);

const segment = encodeURIComponent;
const limitNames = ["requests-per-minute", "tokens-per-minute", "concurrent-requests"] as const;

function wholeNumber(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("It must be a positive whole number.");
  return Number(text);
}
const wholeNumberOrDefault = (text: string) => (text === "default" ? text : wholeNumber(text));

interface LimitFlags {
  readonly requestsPerMinute?: number | "default";
  readonly tokensPerMinute?: number | "default";
  readonly concurrentRequests?: number | "default";
}

/** The limits as the admin API names them. */
function limitsOf({ requestsPerMinute, tokensPerMinute, concurrentRequests }: LimitFlags) {
  const flags = {
    requests_per_minute: requestsPerMinute,
    tokens_per_minute: tokensPerMinute,
    concurrent_requests: concurrentRequests,
  };
  const given = Object.entries(flags).filter(([, limit]) => limit !== undefined);
  if (given.length === 0) return {};
  return { limits: Object.fromEntries(given.map(([name, limit]) => [name, limit === "default" ? null : limit])) };
}

const paged = (command: Command) =>
  command.option("--limit <count>", "how many, 1 to 200").option("--after <id>", "those after this one");
const tier = () => new Option("--tier <tier>", "price tier").choices(["standard", "elite"]);
const mint = "token mint that its buybacks go to";

const accounts = program.command("accounts").description("the owners of balances and keys");
accounts
  .command("create")
  .requiredOption("--name <name>", "name for people")
  .addOption(tier())
  .option("--buyback-token <mint>", mint)
  .action(({ name, tier, buybackToken }) =>
    send("POST", "/accounts", { name, tier, buyback_token: buybackToken }, show.account),
  );
paged(accounts.command("list")).action((query: Query) => get("/accounts", show.accounts, query));
accounts.command("get <account>").action((id: string) => get(`/accounts/${segment(id)}`, show.account));
accounts
  .command("update <account>")
  .option("--name <name>", "name for people")
  .addOption(tier())
  .option("--buyback-token <mint>", mint)
  .option("--no-buyback-token", "remove the buyback token")
  .addOption(new Option("--freeze", "refuse its calls").conflicts("unfreeze"))
  .option("--unfreeze", "accept its calls again")
  .action((id: string, { name, tier, buybackToken, freeze, unfreeze }) => {
    const patch = {
      name,
      tier,
      ...(buybackToken !== undefined && { buyback_token: buybackToken === false ? null : buybackToken }),
      ...((freeze || unfreeze) && { frozen: freeze === true }),
    };
    return send("PATCH", `/accounts/${segment(id)}`, patch, show.account);
  });

program
  .command("credits")
  .description("additions to balances")
  .command("add <account> <usd>")
  .description("adds to the balance; a negative amount subtracts")
  .option("--idempotency-key <key>", "one key adds once, however often it is sent (default: a new one)")
  .option("--reason <reason>", "stored in the ledger")
  .action(async (id: string, usd: string, { idempotencyKey = randomUUID(), reason }) => {
    const body = { amount_usd: usd, idempotency_key: idempotencyKey, reason };
    try {
      await send("POST", `/accounts/${segment(id)}/credits`, body, show.entry);
    } catch (error) {
      if (error instanceof CommandError && (error.status ?? 500) >= 500)
        error.message += `\nThe credit may have been added. To repeat it safely: --idempotency-key ${idempotencyKey}`;
      throw error;
    }
  });

const keys = program.command("keys").description("API keys and their limits");
const create = keys.command("create <account>").option("--name <name>", "name for people");
const update = keys.command("update <key>").option("--name <name>", "name for people");
for (const name of limitNames) {
  create.option(`--${name} <count>`, "instead of the configured limit", wholeNumber);
  update.option(`--${name} <count>`, "instead of the configured limit; 'default' removes it", wholeNumberOrDefault);
}
create.action((id: string, options) =>
  send("POST", `/accounts/${segment(id)}/keys`, { name: options.name, ...limitsOf(options) }, show.newKey),
);
update.action((id: string, options) =>
  send("PATCH", `/keys/${segment(id)}`, { name: options.name, ...limitsOf(options) }, show.key),
);
paged(keys.command("list <account>")).action((id: string, query: Query) =>
  get(`/accounts/${segment(id)}/keys`, show.keys, query),
);
keys.command("revoke <key>").action((id: string) => send("DELETE", `/keys/${segment(id)}`, undefined, show.key));

const ledger = program.command("ledger").description("movements of balances");
paged(ledger.command("list <account>").option("--kind <kind>", "only entries of this kind")).action(
  (id: string, query: Query) => get(`/accounts/${segment(id)}/ledger`, show.entries, query),
);
ledger
  .command("check")
  .description("compares credits less costs with the accounts' balances; exit code 1 if they differ")
  .option("--full", "reads every entry, not only those since the last checkpoint")
  .action(async ({ full }: { full?: true }) => {
    const check = await client().get("/ledger/check", full && { full: "true" });
    print(check, show.check);
    if (check["ok"] !== true) process.exitCode = 1;
  });

program
  .command("requests")
  .description("single calls")
  .command("get <request>")
  .description("one call by its x-request-id: model, upstream, times, usage and cost")
  .action((id: string) => get(`/requests/${segment(id)}`, show.request));

const overOption = ["--over", "only what its payer can no longer use"] as const;
const overQuery = ({ over, ...page }: { over?: true } & Query): Query => ({ ...page, ...(over && { over: "true" }) });
const owed = program.command("owed").description("unused amounts of x402 payments");
paged(owed.command("list"))
  .option(...overOption)
  .action((query) => get("/owed", show.owed, overQuery(query)));
owed
  .command("total")
  .option(...overOption)
  .action((query) => get("/owed/total", show.owedTotal, overQuery(query)));
owed
  .command("refund <payment> <usd>")
  .description("records what was paid back on chain; one transaction counts once")
  .requiredOption("--transaction <signature>", "the transaction that paid it back")
  .option("--reason <reason>", "stored in the ledger")
  .action((id: string, usd: string, { transaction, reason }) =>
    send("POST", `/owed/${segment(id)}/refunds`, { amount_usd: usd, transaction, reason }, show.entry),
  );

const buyback = program.command("buyback").description("shares of charges that buy tokens");
buyback
  .command("accruals")
  .description("by token, amounts that are not in a batch yet")
  .action(() => get("/buyback/accruals", show.accruals));
paged(buyback.command("batches").description("purchases, newest first")).action((query: Query) =>
  get("/buyback/batches", show.batches, query),
);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${error instanceof CommandError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
