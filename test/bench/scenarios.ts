import type { Scenario } from "./measure.ts";
import { pacedGapMs, pacedWords } from "./workload.ts";

/** The loads. `quick` means fewer and shorter rounds, for a smoke test. */
export type Scenarios = ReturnType<typeof createScenarios>;

export const kindOf = (stream: boolean): string => (stream ? "stream" : "JSON");
const atOnce = { delayMs: 0, paced: false };
const pacedMs = pacedGapMs * pacedWords.length;

/**
 * Realistic streams: the number of concurrent streams, either starting together or spread over the duration of one
 * stream.
 */
export const pacedLoads = [100, 500].flatMap((connections) =>
  (["together", "evenly"] as const).map((begun) => ({ connections, begun })),
);
type PacedLoad = (typeof pacedLoads)[number];

export const titles = {
  closed: (stream: boolean, connections: number) =>
    `${kindOf(stream)}, ${connections} connection${connections === 1 ? "" : "s"}`,
  slowProvider: (stream: boolean) => `${kindOf(stream)}, ${slowConnections} connections, answers after 2 s`,
  paced: ({ connections, begun }: PacedLoad) => `${connections} realistic streams, begun ${begun}`,
} as const;

const slowConnections = 500;

export function createScenarios(quick: boolean) {
  const closed = (stream: boolean, connections: number): Scenario => {
    const [rounds, durationMs] = quick ? [2, 1_500] : [5, 4_000];
    const title = titles.closed(stream, connections);
    return { title, stream, pace: { kind: "closed", connections }, provider: atOnce, rounds, durationMs };
  };
  return {
    closed,

    /** V8 needs ten seconds to compile the hot code; before that a call costs up to twice as much. */
    warmUp: (stream: boolean, seconds = 10): Scenario => ({
      ...closed(stream, 50),
      title: `warm-up, ${kindOf(stream)}`,
      rounds: 1,
      durationMs: (quick ? 0.3 : 1) * seconds * 1_000,
    }),

    slowProvider(stream: boolean): Scenario {
      const [rounds, durationMs] = quick ? [1, 3_000] : [3, 5_000];
      const title = titles.slowProvider(stream);
      const pace = { kind: "closed", connections: slowConnections } as const;
      return { title, stream, pace, provider: { ...atOnce, delayMs: 2_000 }, rounds, durationMs };
    },

    steady(stream: boolean, perSecond: number): Scenario {
      const [rounds, durationMs] = quick ? [2, 1_500] : [3, 4_000];
      const title = `${kindOf(stream)}, ${perSecond} calls/s, open loop`;
      return { title, stream, pace: { kind: "open", perSecond }, provider: atOnce, rounds, durationMs };
    },

    paced(load: PacedLoad): Scenario {
      const { connections, begun } = load;
      const [rounds, durationMs] = quick ? [1, pacedMs] : [3, 3 * pacedMs];
      const pace = { kind: "closed", connections, rampMs: begun === "evenly" ? pacedMs : 0 } as const;
      const provider = { ...atOnce, paced: true };
      return { title: titles.paced(load), stream: true, pace, provider, rounds, durationMs };
    },
  };
}
