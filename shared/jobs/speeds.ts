import { z } from "zod";

/** How fast an upstream serves a model, as one worker measured it lately. Moving averages. */
const speed = z.object({
  /** Calls that were measured: the weight of this worker's averages. */
  calls: z.int().positive(),
  /** From the request to the first event of a stream, and to all of an answer that is not streamed. */
  streamMs: z.number().nonnegative().optional(),
  answerMs: z.number().nonnegative().optional(),
  /** Output tokens in a second, from the request to the end of the answer. */
  tokensPerSecond: z.number().nonnegative().optional(),
});
export type Speed = z.infer<typeof speed>;

/** By upstream, and by its own name for the model. */
export const speeds = z.record(z.string(), z.record(z.string(), speed));
export type Speeds = z.infer<typeof speeds>;

const averages = ["streamMs", "answerMs", "tokensPerSecond"] as const;

export const speedKey = (upstream: string, model: string): string => `${upstream} ${model}`;

/** The averages over all workers, by `speedKey`. */
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
