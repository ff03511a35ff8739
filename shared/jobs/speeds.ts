import { z } from "zod";

/** The speed at which an upstream serves a model: moving averages of one worker. */
const speed = z.object({
  /** The number of measured calls, which is the weight of this worker's averages. */
  calls: z.int().positive(),
  /** The time from the request to the first event of a stream, and to the end of a response that is not streamed. */
  streamMs: z.number().nonnegative().optional(),
  answerMs: z.number().nonnegative().optional(),
  /** Output tokens per second, from the request to the end of the response. */
  tokensPerSecond: z.number().nonnegative().optional(),
});
export type Speed = z.infer<typeof speed>;

/** Keyed by upstream, and by the upstream's name for the model. */
export const speeds = z.record(z.string(), z.record(z.string(), speed));
export type Speeds = z.infer<typeof speeds>;

const averages = ["streamMs", "answerMs", "tokensPerSecond"] as const;

export const speedKey = (upstream: string, model: string): string => `${upstream} ${model}`;

export function mergeSpeeds(all: readonly (Speeds | undefined)[]): ReadonlyMap<string, Speed> {
  const lists = new Map<string, Speed[]>();
  for (const each of all)
    for (const [upstream, models] of Object.entries(each ?? {}))
      for (const [model, measured] of Object.entries(models)) {
        const key = speedKey(upstream, model);
        const list = lists.get(key);
        if (list) list.push(measured);
        else lists.set(key, [measured]);
      }
  return new Map([...lists].map(([key, list]) => [key, merged(list)]));
}

function merged(list: readonly Speed[]): Speed {
  const result: Speed = { calls: list.reduce((sum, { calls }) => sum + calls, 0) };
  for (const name of averages) {
    const known = list.flatMap(({ [name]: value, calls }) => (value === undefined ? [] : [{ value, calls }]));
    const calls = known.reduce((sum, each) => sum + each.calls, 0);
    if (calls > 0) result[name] = known.reduce((sum, each) => sum + each.value * each.calls, 0) / calls;
  }
  return result;
}
