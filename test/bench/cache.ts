import { type Bench, mockState, serviceGateway, theService } from "./bench.ts";
import {
  cpuPerCall,
  type Gateway,
  gatewayCpu,
  measureScenario,
  medianRate,
  medianRatio,
  type Round,
  type Scenario,
} from "./measure.ts";
import { titles } from "./scenarios.ts";
import type { LedgerCheck, Service } from "./service.ts";
import { median, ms, sum, table, times, whole } from "./table.ts";
import { cpuTable, latency, othersLine, roundsOf } from "./tables.ts";
import { prompt } from "./workload.ts";

/** Calls without the response cache beside hits, and beside calls that ask for it and miss. */

interface CacheMoney {
  readonly check: LedgerCheck;
  /** Calls that had to be paid: those without the cache, misses, and the one that fills each entry. */
  readonly ran: number;
  readonly providerCalls: number;
  readonly ledgerEntries: number;
}

export interface CacheResults {
  readonly rounds: readonly Round[];
  readonly money: CacheMoney;
}

const wanted = { rate: 1.5, cpu: 0.5, latency: 0.5 };
const connections = [50, 1] as const;

/** All hits have one body, and each miss has its own. */
export function cacheGateways(service: Service): { readonly [Name in "call" | "hit" | "miss"]: Gateway } {
  const { target } = service;
  const headers = { ...target.headers, "x-xm-cache": "true", "x-xm-cache-ttl": "86400" };
  const cached = serviceGateway(service, [{ ...target, headers }]);
  let misses = 0;
  const change = (body: string) => body.replace(prompt, `${prompt} ${misses++}`);
  return {
    call: { ...serviceGateway(service), name: "call" },
    hit: { ...cached, name: "hit" },
    miss: { ...cached, name: "miss", change },
  };
}

/** Short rounds, because other load on the machine then affects the same turn of all of them alike. */
const loadOf = ({ scenarios, quick }: Bench, stream: boolean, open: number): Scenario => ({
  ...scenarios.closed(stream, open),
  ...(!quick && { rounds: 9, durationMs: 2_000 }),
});

export async function measureCache(bench: Bench): Promise<CacheResults> {
  const { scenarios, mockOrigin, say } = bench;
  const service = theService(bench);
  const ledger = service.stores.mongo.collection("ledger");
  const count = async () => ({
    calls: (await mockState(mockOrigin)).calls,
    entries: await ledger.countDocuments({ kind: "usage" }),
  });
  await service.check();
  const before = await count();
  const gateways = Object.values(cacheGateways(service));
  const measured: Round[] = [];
  const warmUps: Round[] = [];
  const run = (scenario: Scenario) => measureScenario(scenario, gateways, bench.processes());
  for (const stream of [false, true]) warmUps.push(...(await run(scenarios.warmUp(stream))));
  for (const stream of [false, true])
    for (const open of connections) {
      const rounds = await run(loadOf(bench, stream, open));
      const rate = ({ name }: Gateway) => medianRate(rounds.filter(({ gateway }) => gateway.name === name)).toFixed(0);
      say(`${titles.closed(stream, open)}: ${gateways.map((each) => `${each.name} ${rate(each)}/s`).join(", ")}`);
      measured.push(...rounds);
    }
  const all = [...warmUps, ...measured];
  const failure = all.find(({ outcome }) => outcome.failed > 0);
  if (failure) throw new Error(`${failure.scenario.title}, ${failure.gateway.name}: ${failure.outcome.firstFailure}`);
  const check = await service.check();
  const after = await count();
  const paying = all.filter(({ gateway }) => gateway.name !== "hit");
  const filling = 2;
  const money = {
    check,
    ran: filling + sum(paying.map(({ outcome }) => outcome.calls)),
    providerCalls: after.calls - before.calls,
    ledgerEntries: after.entries - before.entries,
  };
  return { rounds: measured, money };
}

const rate = ({ outcome }: Round) => outcome.perSecond;
const p50 = ({ outcome }: Round) => latency(outcome);
const apiCpu = (round: Round) => cpuPerCall(round, ["api"]);

function renderTargets(rounds: readonly Round[]): string {
  const ratio = (title: string, value: (round: Round) => number) =>
    medianRatio(roundsOf(rounds, title, "hit"), roundsOf(rounds, title, "call"), value);
  const [many, one] = [titles.closed(false, 50), titles.closed(false, 1)];
  const atMost = (name: string, most: number, reached: number) =>
    [name, `at most ${most}`, times(reached), reached <= most] as const;
  const targets = [
    [`${many}: rate`, `at least ${wanted.rate}`, times(ratio(many, rate)), ratio(many, rate) >= wanted.rate] as const,
    atMost(`${many}: processor time of API, worker and stores`, wanted.cpu, ratio(many, gatewayCpu)),
    atMost(`${one}: p50`, wanted.latency, ratio(one, p50)),
  ];
  return table(
    ["a hit beside a call", "wanted", "measured", ""],
    targets.map(([name, bar, reached, passes]) => [name, bar, reached, passes ? "pass" : "**fail**"]),
  );
}

function renderRounds(rounds: readonly Round[]): string {
  const names = [...new Set(rounds.map(({ gateway }) => gateway.name))];
  const rows = [false, true].flatMap((stream) =>
    connections.flatMap((open) => {
      const title = titles.closed(stream, open);
      const calls = roundsOf(rounds, title, "call");
      return names.map((name) => {
        const own = roundsOf(rounds, title, name);
        const beside = (value: (round: Round) => number) =>
          name === "call" ? "" : times(medianRatio(own, calls, value));
        const middle = (value: (round: Round) => number) => median(own.map(value));
        return [title, name, whole(middle(rate)), beside(rate), ms(middle(p50)), beside(p50), beside(apiCpu)];
      });
    }),
  );
  const ofCall = "of a call's";
  const head = ["load", "", "a second", ofCall, "p50 ms", ofCall, "the API's processor time"];
  return table(head, rows, 2);
}

function renderMoney({ check, ran, providerCalls, ledgerEntries }: CacheMoney): string {
  const isExact =
    check.ok &&
    check.open_holds === 0 &&
    ran === providerCalls &&
    ran === ledgerEntries &&
    Number(check.difference_usd) === 0;
  const counts = [ran, providerCalls, ledgerEntries, check.open_holds].map(whole);
  return table(
    ["", "calls that were not hits", "at the provider", "ledger entries", "held", "difference, $"],
    [[isExact ? "ok" : "**not ok**", ...counts, check.difference_usd]],
  );
}

export const renderCache = ({ rounds, money }: CacheResults, command: string, machine: readonly string[]): string =>
  `# The response cache, measured

Written by \`${command}\`: calls without the response cache (\`call\`), calls that it answers (\`hit\`: one body), and calls that ask for it
in vain (\`miss\`: each has its own body). They take turns in rounds of a few seconds, through one API and one worker process; each
number is the median of the rounds, each ratio the median of the rounds' ratios. The provider is a mock that answers at once, so a
call takes as little time as it can. Prompts have 100 bytes, answers 180; streams have 40 chunks and usage. \`gateway
in all\` is API, worker, Redis, the cache's Redis and MongoDB. Load generator, mock and stores share the machine:

${[...machine, othersLine(rounds)].map((line) => `- ${line}`).join("\n")}

## Targets

${renderTargets(rounds)}

## Rates and latency

${renderRounds(rounds)}

## Processor time, ms a call

Scheduled work in MongoDB takes up to a core for some seconds, in whichever rounds it falls.

${cpuTable(rounds, "call")}

## The money afterwards

${renderMoney(money)}
`;
