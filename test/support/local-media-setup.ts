import type { Task } from "../../shared/catalog/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createLocal } from "../../workers/providers/local/index.ts";
import type { Generated, InputFile, JsonObject } from "../../workers/providers/provider.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";

const log = createLogger("test", "silent");

export interface Kept {
  readonly bytes: Buffer;
  /** In which it came: 1 of a buffer. */
  readonly pieces: number;
  readonly about: JsonObject | undefined;
}

interface Options {
  readonly uploads?: readonly InputFile[];
  readonly job?: string;
  readonly signal?: AbortSignal;
  readonly clock?: ManualClock;
  /** Awaited in `keep` and `remember`. */
  readonly stored?: () => Promise<void>;
}

export interface Work {
  readonly done: Promise<Generated>;
  readonly kept: readonly Kept[];
  readonly jobs: readonly string[];
  /** What was given to be kept: settles when it is. */
  readonly storing: readonly Promise<void>[];
}

/** Begins a call to the local models; what it gives away is there as it comes. */
export function begin(task: Task, input: JsonObject, options: Options = {}): Work {
  const { clock = createManualClock(), stored = () => Promise.resolve() } = options;
  const kept: Kept[] = [];
  const jobs: string[] = [];
  const storing: Promise<void>[] = [];
  const store = async (body: Buffer | AsyncIterable<Buffer>, about: JsonObject | undefined) => {
    await stored();
    const pieces = Buffer.isBuffer(body) ? [body] : await Array.fromAsync(body);
    kept.push({ bytes: Buffer.concat(pieces), pieces: pieces.length, about });
  };
  const done = createLocal({ clock }).generate({
    task,
    model: task,
    input,
    uploads: new Map((options.uploads ?? []).map((file) => [file.id, file])),
    job: options.job,
    async remember(job) {
      await stored();
      jobs.push(job);
    },
    store(body, about) {
      const work = store(body, about);
      storing.push(work);
      return work;
    },
    hold: () => {},
    disconnected: new AbortController().signal,
    signal: options.signal ?? new AbortController().signal,
    log,
  });
  return { done, kept, jobs, storing };
}

export async function generate(task: Task, input: JsonObject, options?: Options) {
  const { done, kept, jobs } = begin(task, input, options);
  return { ...(await done), kept, jobs };
}

export const upload = (mime: string, bytes: Buffer, rest: Partial<InputFile> = {}): InputFile => ({
  id: `upl_${"0".repeat(23)}1`,
  param: "input.file",
  mime,
  kind: mime.split("/")[0] as InputFile["kind"],
  bytes: bytes.length,
  link: undefined,
  read: () => Promise.resolve(bytes),
  base64: () => Promise.resolve(bytes.toString("base64")),
  release: () => {},
  ...rest,
});

/** A promise that never settles: of a store that does not answer. */
export const never = (): Promise<never> => new Promise(() => undefined);
