import type { JsonObject } from "#json";
import type { Task } from "../../shared/catalog/index.ts";
import { invalidValue } from "../../shared/errors.ts";
import type { GenerationCall, InputFile } from "../../workers/providers/provider.ts";
import { createManualClock } from "./manual-clock.ts";
import { log, undisturbed } from "./upstreams-setup.ts";

interface StoredFile {
  readonly bytes: Buffer;
  readonly about: JsonObject | undefined;
}

/** Calls that generate files. The files and job ids that a provider stores are collected. */
export function createMediaCalls(model: string) {
  const stored: StoredFile[] = [];
  const remembered: string[] = [];
  const call = (task: Task, input: JsonObject, more: Partial<GenerationCall> = {}): GenerationCall => ({
    task,
    model,
    input,
    uploads: new Map(),
    job: undefined,
    remember: (job) => Promise.resolve(void remembered.push(job)),
    store: async (body, about) => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.concat(await Array.fromAsync(body));
      stored.push({ bytes, about });
    },
    ...undisturbed,
    signal: new AbortController().signal,
    log,
    ...more,
  });
  return { stored, remembered, call };
}

/** Files that the caller uploaded, by id. A number of bytes means that the file must not be read. */
export function uploadsOf(
  files: readonly (Pick<InputFile, "id" | "param" | "mime"> & { content: Buffer | number })[],
): ReadonlyMap<string, InputFile> {
  return new Map(
    files.map(({ content, ...file }): [string, InputFile] => {
      const bytes = typeof content === "number" ? content : content.length;
      const read = (limitBytes: number): Promise<Buffer> => {
        if (bytes > limitBytes) throw invalidValue(file.param, `over ${limitBytes} bytes`);
        if (typeof content === "number") throw new Error("it was read");
        return Promise.resolve(content);
      };
      const kind = file.mime.split("/")[0] as InputFile["kind"];
      const base64 = async (limitBytes: number) => (await read(limitBytes)).toString("base64");
      return [file.id, { ...file, kind, bytes, link: undefined, read, base64, release: () => {} }];
    }),
  );
}

/** A manual clock on which a test can wait for a timer to begin. */
export function createAwaitedClock() {
  const clock = createManualClock();
  const pending = new Set<{ readonly ms: number }>();
  let changed = Promise.withResolvers<void>();
  const begun = async (ms: number) => {
    while (![...pending].some((timer) => timer.ms === ms)) await changed.promise;
  };
  return {
    ...clock,
    /** Resolves once a timer of that length has begun. */
    begun,
    after(ms: number, fire: () => void) {
      const timer = { ms };
      pending.add(timer);
      changed.resolve();
      changed = Promise.withResolvers();
      const stop = clock.after(ms, () => {
        pending.delete(timer);
        fire();
      });
      return () => {
        pending.delete(timer);
        stop();
      };
    },
    /** Advances the clock by each of these timers, once it has begun. */
    async pass(...waits: readonly number[]) {
      for (const ms of waits) {
        await begun(ms);
        clock.advance(ms);
      }
    },
  };
}
