import { setTimeout as wait } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { startChain } from "../../infra/embedded/solana/index.ts";
import { type Bench, processOf } from "./bench.ts";
import type { Attack, Attackers } from "./exhausting-callers.ts";
import { type Outcome, runLoad } from "./load.ts";
import { openDescriptors, residentBytes, sampleMs, watchMost } from "./processes.ts";
import { openKey, type Service } from "./service.ts";
import { mebi, ms, table, times } from "./table.ts";
import { requestBody } from "./workload.ts";

/**
 * Callers who try to exhaust the service's memory: the peak memory of API and worker, and the extra latency of other
 * callers.
 */

/** A worker has a budget of 1 GiB for large requests and answers. */
const limitBytes = { api: 700 * 1024 * 1024, worker: 1_200 * 1024 * 1024 } as const;
const limitRatio = 2;
/** Parsing one large answer may hold others up for this long. */
const parseMs = 100;
const perSecond = 20;
const settleMs = 3_000;
const openedAtOnce = 20;
const names = ["api", "worker"] as const;

interface Plan {
  readonly attack: Attack;
  readonly title: string;
  readonly callers: number;
  readonly accounts: number;
  readonly usd?: string;
  /** Others may be held up for this long, whatever the ratio. */
  readonly heldUpMs?: number;
}

const plans: readonly Plan[] = [
  { attack: "streams", title: "40 who never read a stream of 20 MB", callers: 40, accounts: 40, usd: "1000" },
  { attack: "drips", title: "200 who send a body byte by byte after 1 MB", callers: 200, accounts: 20, usd: "10" },
  { attack: "keyless", title: "1,000 keyless ones, 120 KB each", callers: 1_000, accounts: 0 },
  { attack: "unfunded", title: "500 accounts without money, 25 MB each", callers: 500, accounts: 500 },
  {
    attack: "embeddings",
    title: "40 who read 16 MB of embeddings each",
    callers: 40,
    accounts: 1,
    usd: "1000",
    heldUpMs: parseMs,
  },
  {
    attack: "unreadEmbeddings",
    title: "40 who do not read theirs",
    callers: 40,
    accounts: 1,
    usd: "1000",
    heldUpMs: parseMs,
  },
  { attack: "replays", title: "40 who do not read the same stored ones", callers: 40, accounts: 1, usd: "1000" },
  { attack: "pipelined", title: "100 keyless ones, 64 KB of GETs a second each, unread", callers: 100, accounts: 0 },
];

export interface ExhaustionRound extends Pick<Plan, "title"> {
  readonly heldUpMs: number;
  readonly alone: Outcome;
  readonly meanwhile: Outcome;
  readonly mostBytes: Readonly<Record<(typeof names)[number], number>>;
  readonly redisBytes: number;
  /** The API's open file descriptors at most. */
  readonly descriptors: number;
  /** The counts of each status that the attacking callers received. */
  readonly statuses: Readonly<Record<string, number>>;
}

/** Settings that quote a price to callers without a key. */
export async function payable(stops: (() => Promise<void>)[]): Promise<Readonly<Record<string, string>>> {
  const chain = await startChain();
  stops.unshift(chain.close);
  return {
    X402_NETWORK: chain.network,
    X402_PAY_TO: chain.merchant.address,
    SOLANA_RPC_URL: chain.rpcUrl,
    X402_FEE_PAYER_KEY: chain.feePayer.secret,
    NATIVE_FORMATS_ANY_MODEL: "true",
  };
}

/** Opens keys with the default limits. */
async function openKeys({ admin }: Service, { accounts, usd }: Plan): Promise<string[]> {
  const open = async () => (await openKey(admin, { usd })).key;
  const keys: string[] = [];
  while (keys.length < accounts)
    keys.push(...(await Promise.all(Array.from({ length: Math.min(openedAtOnce, accounts - keys.length) }, open))));
  return keys;
}

export async function measureExhaustion(
  service: Service,
  { quick, say }: Pick<Bench, "quick" | "say">,
): Promise<ExhaustionRound[]> {
  const durationMs = quick ? 8_000 : 35_000;
  const { target } = service;
  const others = () =>
    runLoad({
      targets: [target],
      body: requestBody(target.model, false),
      end: "}",
      pace: { kind: "open", perSecond },
      durationMs,
      timeoutMs: 30_000,
    });
  const rounds: ExhaustionRound[] = [];
  for (const plan of plans) {
    const { attack, title, callers, accounts, heldUpMs = 0 } = plan;
    const opened = await openKeys(service, plan);
    const keys = Array.from({ length: callers }, (_, caller) => opened[caller % accounts] ?? "");
    await wait(settleMs);
    const alone = await others();
    const workerData: Attackers = { attack, port: Number(new URL(target.origin).port), model: target.model, keys };
    const watches = names.map((name) => {
      const process = processOf(service, name);
      return watchMost(() => residentBytes(process));
    });
    const descriptorsMost = watchMost(() => openDescriptors(processOf(service, "api")));
    const redisMost = watchMost(() => service.stores.redisMemoryBytes());
    let statuses: Readonly<Record<string, number>> = {};
    const attackers = new Worker(new URL("exhausting-callers.ts", import.meta.url), { workerData });
    attackers.on("message", (counts: typeof statuses) => {
      statuses = counts;
    });
    await wait(settleMs);
    const meanwhile = await others();
    const [api = 0, worker = 0] = watches.map((most) => most());
    const redisBytes = redisMost();
    const descriptors = descriptorsMost();
    await attackers.terminate();
    const round = { title, heldUpMs, alone, meanwhile, mostBytes: { api, worker }, redisBytes, descriptors, statuses };
    say(JSON.stringify(round));
    rounds.push(round);
  }
  return rounds;
}

export function renderExhaustion(
  rounds: readonly ExhaustionRound[],
  command: string,
  machine: readonly string[],
): string {
  const rows = rounds.map(({ title, heldUpMs, alone, meanwhile, mostBytes, redisBytes, descriptors, statuses }) => {
    const ratio = meanwhile.latencyMs.p99 / alone.latencyMs.p99;
    const isBounded = names.every((name) => mostBytes[name] < limitBytes[name]);
    const isQuick = ratio <= limitRatio || meanwhile.latencyMs.p99 <= alone.latencyMs.p99 + heldUpMs;
    return [
      title,
      Object.entries(statuses)
        .map(([status, count]) => `${count} x ${status}`)
        .join(", "),
      mebi(mostBytes.api),
      mebi(mostBytes.worker),
      mebi(redisBytes),
      String(descriptors),
      ms(alone.latencyMs.p99),
      ms(meanwhile.latencyMs.p99),
      times(ratio),
      String(meanwhile.failed),
      isBounded && isQuick && meanwhile.failed === 0 ? "pass" : "**fail**",
    ];
  });
  return `# Exhaustion, measured

Written by \`${command}\`: resident memory of API and worker at most, looked at every ${sampleMs} ms, and ${perSecond} JSON calls a second of
another account before the attack and meanwhile. Wanted: API under ${mebi(limitBytes.api)} MiB, worker under ${mebi(limitBytes.worker)} MiB, p99
within ${limitRatio} times, or beside embeddings within ${parseMs} ms, no call failed. The processes go on from one attack to the next. Attackers, callers, mock, API,
worker and stores share the machine:

${machine.map((line) => `- ${line}`).join("\n")}

${table(["attack", "answered", "API, MiB", "worker, MiB", "Redis, MiB", "API, descriptors", "p99 alone, ms", "meanwhile", "ratio", "failed", ""], rows, 2)}
`;
}
