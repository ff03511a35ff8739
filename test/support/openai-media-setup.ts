import { onTestFinished } from "vitest";
import type { Task } from "../../shared/catalog/index.ts";
import { invalidValue } from "../../shared/errors.ts";
import { createOpenai } from "../../workers/providers/openai/index.ts";
import type { GenerationCall, InputFile, JsonObject } from "../../workers/providers/provider.ts";
import { createManualClock } from "./manual-clock.ts";
import { startMockOpenai } from "./mock-openai.ts";
import { log, undisturbed } from "./upstreams-setup.ts";

export interface Kept {
  readonly bytes: Buffer;
  readonly about: JsonObject | undefined;
}

export type More = Partial<
  Pick<GenerationCall, "uploads" | "job" | "remember" | "store" | "hold" | "signal" | "disconnected">
>;

/** A mock provider, a provider for it, and calls whose files are kept in a list. */
export async function startMedia({ concurrency = 2 } = {}) {
  const mock = await startMockOpenai();
  const clock = createAwaitedClock();
  const target = {
    baseUrl: mock.url,
    apiKey: "sk-operator",
    concurrency,
    storesAnswers: false,
    formats: ["chat"] as const,
  };
  const provider = createOpenai(target, { clock });
  onTestFinished(async () => {
    await provider.close();
    await mock.close();
  });
  const kept: Kept[] = [];
  const call = (task: Task, input: JsonObject, more: More = {}): GenerationCall => ({
    task,
    model: "provider-model",
    input,
    uploads: new Map(),
    job: undefined,
    remember: () => Promise.resolve(),
    store: async (body, about) => {
      const bytes = Buffer.isBuffer(body) ? body : Buffer.concat(await Array.fromAsync(body));
      kept.push({ bytes, about });
    },
    ...undisturbed,
    signal: new AbortController().signal,
    log,
    ...more,
  });
  return { mock, clock, provider, kept, call };
}

/** Files that the caller uploaded, by id. `bytes` alone stands for a file that is never read. */
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

/** A manual clock that can wait until somebody waits for it. */
export function createAwaitedClock() {
  const clock = createManualClock();
  const pending = new Set<{ readonly ms: number }>();
  let changed = Promise.withResolvers<void>();
  const begun = async (ms: number) => {
    while (![...pending].some((timer) => timer.ms === ms)) await changed.promise;
  };
  return {
    ...clock,
    /** Resolves once somebody waits for so long. */
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
    /** Lets each of these waits pass, as soon as it has begun. */
    async pass(...waits: readonly number[]) {
      for (const ms of waits) {
        await begun(ms);
        clock.advance(ms);
      }
    },
  };
}
