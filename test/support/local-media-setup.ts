import type { JsonObject } from "#json";
import type { Task } from "../../shared/catalog/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createCounting } from "../../workers/counting/index.ts";
import { createLocal } from "../../workers/providers/local/index.ts";
import type { Generated, InputFile } from "../../workers/providers/provider.ts";
import { createManualClock, type ManualClock } from "./manual-clock.ts";
import { undisturbed } from "./upstreams-setup.ts";

const log = createLogger("test", "silent");

const counting = createCounting({ clock: createManualClock(), log });

export const localProvider = (clock: ManualClock = createManualClock()) => createLocal({ clock, counting });

export interface StoredFile {
  readonly bytes: Buffer;
  /** The number of chunks in which it came: 1 for a buffer. */
  readonly pieces: number;
  readonly about: JsonObject | undefined;
}

interface Options {
  readonly uploads?: readonly InputFile[];
  readonly job?: string;
  readonly signal?: AbortSignal;
  readonly clock?: ManualClock;
  /** Awaited in `store` and `remember`. */
  readonly beforeStore?: () => Promise<void>;
}

export interface Work {
  readonly done: Promise<Generated>;
  readonly stored: readonly StoredFile[];
  readonly jobs: readonly string[];
  /** Each settles when its file is stored. */
  readonly storing: readonly Promise<void>[];
}

/** Starts a call to the local models, and collects its files and job ids. */
export function begin(task: Task, input: JsonObject, options: Options = {}): Work {
  const { clock = createManualClock(), beforeStore = () => Promise.resolve() } = options;
  const stored: StoredFile[] = [];
  const jobs: string[] = [];
  const storing: Promise<void>[] = [];
  const store = async (body: Buffer | AsyncIterable<Buffer>, about: JsonObject | undefined) => {
    await beforeStore();
    const pieces = Buffer.isBuffer(body) ? [body] : await Array.fromAsync(body);
    stored.push({ bytes: Buffer.concat(pieces), pieces: pieces.length, about });
  };
  const done = localProvider(clock).generate({
    task,
    model: task,
    input,
    uploads: new Map((options.uploads ?? []).map((file) => [file.id, file])),
    job: options.job,
    async remember(job) {
      await beforeStore();
      jobs.push(job);
    },
    store(body, about) {
      const work = store(body, about);
      storing.push(work);
      return work;
    },
    ...undisturbed,
    signal: options.signal ?? new AbortController().signal,
    log,
  });
  return { done, stored, jobs, storing };
}

export async function generate(task: Task, input: JsonObject, options?: Options) {
  const { done, stored, jobs } = begin(task, input, options);
  return { ...(await done), stored, jobs };
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

/** A promise that never settles, like that of an unresponsive store. */
export const never = (): Promise<never> => new Promise(() => undefined);
