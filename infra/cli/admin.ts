import { randomUUID } from "node:crypto";
import { Command, InvalidArgumentError, Option } from "commander";
import { type AdminClient, CommandError, createAdminClient, findTarget, type Query } from "./admin-client.ts";
import type { Account, Accrual, Batch, Check, Entry, Key, List, Owed, OwedTotal } from "./admin-objects.ts";
import { show } from "./admin-print.ts";

/** `npm run admin -- <noun> <verb>`: the admin interface for people (tables) and programs (`--json`). */
const program = new Command("admin")
  .description("Accounts, keys and balances of a running service.")
  .option("--url <address>", "address of the API (default: ADMIN_URL, else what npm start wrote)")
  .option("--token <token>", "its ADMIN_TOKEN (default: ADMIN_TOKEN, else what npm start wrote)")
  .option("--json", "print the answer as JSON")
  .helpCommand(false)
  .showHelpAfterError("Add --help for the usage.");

const client = (): AdminClient => createAdminClient(findTarget(program.opts(), process.env));

function print<T>(answer: T, forPeople: (answer: T) => string): void {
  process.stdout.write(program.opts().json ? `${JSON.stringify(answer, null, 2)}\n` : forPeople(answer));
}

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

/** The flags as the interface names them, if there are any. */
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
const tier = () => new Option("--tier <tier>", "whose prices it pays").choices(["standard", "elite"]);
const mint = "token mint that its buybacks go to";

const accounts = program.command("accounts").description("who pays");
accounts
  .command("create")
  .requiredOption("--name <name>", "what people call it")
  .addOption(tier())
  .option("--buyback-token <mint>", mint)
  .action(async ({ name, tier, buybackToken }) =>
    print(await client().send<Account>("POST", "/accounts", { name, tier, buyback_token: buybackToken }), show.account),
  );
paged(accounts.command("list")).action(async (query: Query) =>
  print(await client().get<List<Account>>("/accounts", query), show.accounts),
);
accounts
  .command("get <account>")
  .action(async (id: string) => print(await client().get<Account>(`/accounts/${segment(id)}`), show.account));
accounts
  .command("update <account>")
  .option("--name <name>", "what people call it")
  .addOption(tier())
  .option("--buyback-token <mint>", mint)
  .option("--no-buyback-token", "take the buyback token away")
  .addOption(new Option("--freeze", "refuse its calls").conflicts("unfreeze"))
  .option("--unfreeze", "take its calls again")
  .action(async (id: string, { name, tier, buybackToken, freeze, unfreeze }) => {
    const patch = {
      name,
      tier,
      ...(buybackToken !== undefined && { buyback_token: buybackToken === false ? null : buybackToken }),
      ...((freeze || unfreeze) && { frozen: freeze === true }),
    };
    print(await client().send<Account>("PATCH", `/accounts/${segment(id)}`, patch), show.account);
  });

program
  .command("credits")
  .description("what accounts pay from")
  .command("add <account> <usd>")
  .description("adds to the balance; a negative amount takes back")
  .option("--idempotency-key <key>", "the same key adds once, however often it is sent (default: a new one)")
  .option("--reason <reason>", "kept in the ledger")
  .action(async (id: string, usd: string, { idempotencyKey = randomUUID(), reason }) => {
    const body = { amount_usd: usd, idempotency_key: idempotencyKey, reason };
    try {
      print(await client().send<Entry>("POST", `/accounts/${segment(id)}/credits`, body), show.entry);
    } catch (error) {
      if (error instanceof CommandError && (error.status ?? 500) >= 500)
        error.message += `\nIt may have been added all the same. To repeat it safely: --idempotency-key ${idempotencyKey}`;
      throw error;
    }
  });

const keys = program.command("keys").description("who calls");
const create = keys.command("create <account>").option("--name <name>", "what people call it");
const update = keys.command("update <key>").option("--name <name>", "what people call it");
for (const name of limitNames) {
  create.option(`--${name} <count>`, "instead of the configured limit", wholeNumber);
  update.option(`--${name} <count>`, "instead of the configured limit; 'default' takes it away", wholeNumberOrDefault);
}
create.action(async (id: string, options) => {
  const body = { name: options.name, ...limitsOf(options) };
  print(await client().send<Key>("POST", `/accounts/${segment(id)}/keys`, body), show.newKey);
});
update.action(async (id: string, options) => {
  const body = { name: options.name, ...limitsOf(options) };
  print(await client().send<Key>("PATCH", `/keys/${segment(id)}`, body), show.key);
});
paged(keys.command("list <account>")).action(async (id: string, query: Query) =>
  print(await client().get<List<Key>>(`/accounts/${segment(id)}/keys`, query), show.keys),
);
keys
  .command("revoke <key>")
  .action(async (id: string) => print(await client().send<Key>("DELETE", `/keys/${segment(id)}`), show.key));

const ledger = program.command("ledger").description("what moved");
paged(ledger.command("list <account>").option("--kind <kind>", "only entries of this kind")).action(
  async (id: string, query: Query) =>
    print(await client().get<List<Entry>>(`/accounts/${segment(id)}/ledger`, query), show.entries),
);
ledger
  .command("check")
  .description("whether credits less costs are what accounts have; exit code 1 if not")
  .option("--full", "reads every entry, not only those since the last checkpoint")
  .action(async ({ full }: { full?: true }) => {
    const check = await client().get<Check>("/ledger/check", full && { full: "true" });
    print(check, show.check);
    if (check.ok !== true) process.exitCode = 1;
  });

program
  .command("requests")
  .description("single calls")
  .command("get <request>")
  .description("the way of one call, by its x-request-id")
  .action(async (id: string) => print(await client().get<Entry>(`/requests/${segment(id)}`), show.request));

const overOption = ["--over", "only what its payer can use no more"] as const;
const overQuery = ({ over, ...page }: { over?: true } & Query): Query => ({ ...page, ...(over && { over: "true" }) });
const owed = program.command("owed").description("what is left of payments by x402");
paged(owed.command("list"))
  .option(...overOption)
  .action(async (query) => print(await client().get<List<Owed>>("/owed", overQuery(query)), show.owed));
owed
  .command("total")
  .option(...overOption)
  .action(async (query) => print(await client().get<OwedTotal>("/owed/total", overQuery(query)), show.owedTotal));
owed
  .command("refund <payment> <usd>")
  .description("records what was paid back on chain; the same transaction counts once")
  .requiredOption("--transaction <signature>", "the one that paid it back")
  .option("--reason <reason>", "kept in the ledger")
  .action(async (id: string, usd: string, { transaction, reason }) => {
    const body = { amount_usd: usd, transaction, reason };
    print(await client().send<Entry>("POST", `/owed/${segment(id)}/refunds`, body), show.entry);
  });

const buyback = program.command("buyback").description("what charges put aside for tokens");
buyback
  .command("accruals")
  .description("by token, what waits to come over the minimum")
  .action(async () => print(await client().get<List<Accrual>>("/buyback/accruals"), show.accruals));
paged(buyback.command("batches").description("what is bought at once, newest first")).action(async (query: Query) =>
  print(await client().get<List<Batch>>("/buyback/batches", query), show.batches),
);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`${error instanceof CommandError ? error.message : (error as Error).stack}\n`);
  process.exitCode = 1;
}
