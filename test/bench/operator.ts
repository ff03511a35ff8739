import { cpuPerCall, gatewayCpu, type Round } from "./measure.ts";
import { pacedLoads, titles } from "./scenarios.ts";
import { median, table, whole } from "./table.ts";
import { roundsOf, waitingBytes } from "./tables.ts";

const perSecond = 1_000;
/** The average share of a core used by a process of the API or a worker, which leaves headroom for bursts. */
const plannedShare = 0.6;

interface Kind {
  readonly title: string;
  /** The scenario in which its processor time was measured. */
  readonly load: string;
  /** The scenario in which its Redis memory was measured, and how long a call is open there. */
  readonly waiting: string;
  readonly openSeconds: number;
}

const kinds: readonly Kind[] = [
  ...[false, true].map((stream) => ({
    title: stream ? "streams of 40 chunks, 2 s each" : "JSON calls, 2 s each",
    load: titles.closed(stream, 50),
    waiting: titles.slowProvider(stream),
    openSeconds: 2,
  })),
  ...pacedLoads.flatMap((load) => {
    const title = `streams of 100 chunks, 3.3 s each (measured with ${load.connections} at once)`;
    const measuredAs = titles.paced(load);
    return load.begun === "evenly" ? [{ title, load: measuredAs, waiting: measuredAs, openSeconds: 3.3 }] : [];
  }),
];

/** The cores for 1,000 calls a second, derived from the processor time of a call: a millisecond per call is a core. */
export function renderOperator(rounds: readonly Round[]): string {
  const rows = kinds.flatMap(({ title, load, waiting, openSeconds }) => {
    const own = roundsOf(rounds, load, "service");
    const portkey = roundsOf(rounds, load, "portkey");
    if (own.length === 0) return [];
    const cores = (name: string) => median(own.map((round) => cpuPerCall(round, [name]))) * (perSecond / 1_000);
    const processes = (name: string) => `${cores(name).toFixed(2)} (${Math.ceil(cores(name) / plannedShare)})`;
    const redisBytes = waitingBytes(roundsOf(rounds, waiting, "service")) * perSecond * openSeconds;
    return [
      [
        title,
        processes("api"),
        processes("worker"),
        cores("Redis").toFixed(2),
        cores("MongoDB").toFixed(2),
        median(own.map(gatewayCpu)).toFixed(2),
        portkey.length > 0 ? median(portkey.map(gatewayCpu)).toFixed(2) : "",
        Number.isNaN(redisBytes) ? "" : whole(redisBytes / 1024 ** 2),
      ],
    ];
  });
  const head = [
    "1,000 a second",
    "API: cores (processes)",
    "workers",
    "Redis",
    "MongoDB",
    "cores in all",
    "Portkey",
    "Redis, MB",
  ];
  return `Cores of this machine, by the processor time a call in this run at 50 connections, and of realistic streams. A Node process runs on
one core: in brackets the number of processes at ${plannedShare * 100} % of one each, without a spare one. Redis runs on one core too: past that, use
a cluster. Its memory is that of the calls that are open at once.

${table(head, rows)}`;
}
