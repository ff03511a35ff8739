import { type Clock, resultWithin } from "../clock.ts";
import type { Metrics } from "./metrics.ts";

const timeoutMs = 1_000;
const validMs = 1_000;

/** Resolves to the seconds that a check took, or undefined if it failed or took more than a second. */
export type Probe = () => Promise<number | undefined>;

/** Checks at most once a second, regardless of the number of requests. */
export function createProbe(clock: Clock, ping: () => Promise<unknown>): Probe {
  let last: { readonly at: number; readonly reply: Promise<number | undefined> } | undefined;

  async function measure(): Promise<number> {
    const start = performance.now();
    await ping();
    return (performance.now() - start) / 1_000;
  }

  return () => {
    const at = clock.now();
    if (!last || at - last.at >= validMs) last = { at, reply: resultWithin(clock, timeoutMs, measure) };
    return last.reply;
  };
}

/** Pings the stores, for health checks and as a metric. */
export function createProbes<Store extends string>(
  { clock, metrics }: { clock: Clock; metrics: Metrics },
  pings: Readonly<Record<Store, () => Promise<unknown>>>,
): Readonly<Record<Store, Probe>> {
  const probes = Object.entries<() => Promise<unknown>>(pings).map(
    ([store, ping]) => [store, createProbe(clock, ping)] as const,
  );
  metrics.gauge("inference_store_ping_seconds", async () => {
    const replies = await Promise.all(probes.map(async ([store, probe]) => ({ store, seconds: await probe() })));
    return replies.flatMap(({ store, seconds }) => (seconds === undefined ? [] : [[{ store }, seconds] as const]));
  });
  return Object.fromEntries(probes) as Record<Store, Probe>;
}
