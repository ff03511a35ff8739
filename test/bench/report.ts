import { type AccountResults, spreadAccounts } from "./accounts.ts";
import { renderBars, renderChecks } from "./bars.ts";
import type { MoneyCheck } from "./bench.ts";
import type { Round } from "./measure.ts";
import { renderOperator } from "./operator.ts";
import { ms, table, whole } from "./table.ts";
import { coresLine, cpuTable, memoryTable, othersLine, speedTable, storesTable } from "./tables.ts";

/** The measurements. A part that did not run has no rounds. */
export interface Results {
  readonly command: string;
  /** The machine, described line by line. */
  readonly machine: readonly string[];
  readonly speed: readonly Round[];
  readonly streams: readonly Round[];
  readonly scaling: readonly Round[];
  readonly accounts: AccountResults;
  readonly checks: readonly MoneyCheck[];
  readonly minutes: number;
}

/** Empty without rounds. */
const section = (title: string, rounds: readonly Round[], render: (rounds: readonly Round[]) => string): string =>
  rounds.length > 0 ? `## ${title}\n\n${render(rounds)}\n\n` : "";

const renderStreams = (rounds: readonly Round[]) =>
  `100 or 500 at once, of 100 chunks, one every 33 ms, so a stream takes 3.3 s. They begin together, or each at its own time: what is due
at the same time can be done together. Processor time is that of a whole stream.

${cpuTable(rounds, "portkey")}

${speedTable(rounds)}`;

const renderScaling = (rounds: readonly Round[]) =>
  `50 connections; the API's and the workers' numbers are sums over their processes. All processes share the same cores, so look at the
processor time a call, not at the rate. Portkey's gateway is one process throughout.

What limits the service's rate: ${coresLine(rounds)}.
Other programs had the rest, or it was idle while the 50 callers waited for answers. More processes bring no more cores here, and a call
costs more, because fewer calls share a group, an insert and a lease.

${cpuTable(rounds, "portkey")}`;

function renderAccounts({ history, spread, reads }: AccountResults): string {
  const readRows = reads.map(({ title, firstPageMs, checkMs, fullCheckMs }) => [
    title,
    ms(firstPageMs),
    ms(checkMs),
    ms(fullCheckMs),
  ]);
  return `50 connections. One account with one key against ${whole(spreadAccounts)} accounts with a key each, by turns:

${cpuTable(spread, "one account")}

What limits both: ${coresLine(spread)}.
The calls of one account share leases and inserts. Each of ${whole(spreadAccounts)} accounts has a lease of its own at each API instance, which few calls
share, so a call asks more of the stores, and the same cores serve fewer calls.

A new account against two with histories, in the same ledger:

${cpuTable(history, "new account")}

What limits them: ${coresLine(history)}.
A call reads no earlier entry and inserts one, so a history costs something only where the indexes of the ledger do not fit the cache of
MongoDB (0.5 GB here). All three use the same indexes: what these cost shows beside the one account above, measured before the histories came.

What an operator asks for, ms; the checks are of all accounts, before and after each history came. The time of a page is limited by its own
entries, that of a check by the entries that no checkpoint counts, and that of a full check by reading every entry:

${table(["account", "first page of its ledger", "`ledger check`", "`ledger check --full`"], readRows)}`;
}

const renderStores = (rounds: readonly Round[]) =>
  `Redis commands count those inside scripts; KB are received and sent. Of calls that wait for a provider also what Redis holds for each,
at most. A wake-up is a thread of the process that goes on after waiting.

${storesTable(rounds)}`;

export function renderReport(results: Results): string {
  const { command, machine, speed, streams, scaling, accounts, checks, minutes } = results;
  const compared = [...speed, ...streams];
  const byAccount = [...accounts.spread, ...accounts.history];
  const fixedSize = [...compared, ...byAccount];
  const sections = [
    section(
      "Bars",
      compared,
      () => `Beside Portkey in this run, the median of the rounds' ratios. A unit is what Portkey adds to a direct JSON call at 1 connection.

${renderBars(compared, checks)}`,
    ),
    section("For 1,000 calls a second", compared, renderOperator),
    section("Speed", speed, speedTable),
    section("Processor time, ms a call", speed, (rounds) => cpuTable(rounds, "portkey")),
    section("Realistic streams", streams, renderStreams),
    section("More workers and API instances", scaling, renderScaling),
    section("Accounts", byAccount, () => renderAccounts(accounts)),
    section(
      "What a call asks of the stores",
      fixedSize.filter(({ gateway }) => gateway.stores),
      renderStores,
    ),
    section("Memory", fixedSize, memoryTable),
  ];
  return `# Measured

Written by \`${command}\` in ${Math.round(minutes)} minutes. A \`direct\` call goes straight to the mock; the service holds, captures and settles
money for each call, Portkey's gateway does not. All processes, the mock and the load generator too, share the machine:

${[...machine, othersLine([...fixedSize, ...scaling])].map((line) => `- ${line}`).join("\n")}

Each number is the median of a load's rounds (\`calls/s\`: with the least and the most); in every round the gateways take turns.
\`added\` is over direct. A \`first byte\` is that of the body. Streams have 40 chunks and usage, prompts 100 bytes.

![Processor time a call](results.svg)

${sections.join("")}## The money after every scenario

${renderChecks(checks)}
`;
}
