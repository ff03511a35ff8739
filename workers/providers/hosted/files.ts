import { sleep } from "#platform/clock";
import type { SafeFetch } from "#platform/safe-fetch";
import { type GenerationCall, UpstreamFailure } from "../provider.ts";
import { secondsOf } from "../recording.ts";
import { broken } from "../wire/answers.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { keepAnswer } from "../wire/store-stream.ts";
import type { NamedFile } from "./parts.ts";

const megabyte = 1024 * 1024;
const fileLimitBytes = 512 * megabyte;
/** Measured in memory. */
const measuredLimitBytes = 128 * megabyte;
const attempts = 3;
const againMs = 2_000;

export interface Fetching {
  readonly provider: ProviderClient;
  readonly safeFetch: SafeFetch;
}

/** The work is done and paid for: a connection that breaks is no reason to lose it. */
export async function again<T>({ provider }: Fetching, call: GenerationCall, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      const passes = error instanceof UpstreamFailure && error.kind !== "refused" && error.kind !== "misconfigured";
      if (!passes || tries === attempts) throw error;
      call.log.warn({ err: error.message }, "what a provider made could not be fetched");
      await sleep(provider.clock, Math.max(againMs, Math.min(error.retryAfterMs ?? 0, 10 * againMs)), call.signal);
    }
  }
}

export const keepFile = (fetching: Fetching, call: GenerationCall, file: NamedFile): Promise<void> =>
  again(fetching, call, async () => {
    if (isData(file.url)) return call.keep(dataOf(file.url).bytes, file.about);
    await keepAnswer(fetching.provider, call, await answerOf(fetching, call, file, fileLimitBytes), file.about);
  });

/** How long it is, which nobody said. */
export const keepMeasured = (fetching: Fetching, call: GenerationCall, file: NamedFile): Promise<number> =>
  again(fetching, call, async () => {
    const { bytes, mime } = isData(file.url) ? dataOf(file.url) : await fetched(fetching, call, file);
    const seconds = await secondsOf(bytes, mime);
    if (seconds === undefined) throw new UpstreamFailure("unavailable", "a recording whose length cannot be told");
    await call.keep(bytes, file.about);
    return seconds;
  });

async function fetched(fetching: Fetching, call: GenerationCall, file: NamedFile) {
  const { headers, body } = await answerOf(fetching, call, file, measuredLimitBytes);
  const parts = await Array.fromAsync(body).catch((error: unknown) => broken(error, call.signal));
  return { bytes: Buffer.concat(parts), mime: headers["content-type"] ?? "" };
}

const answerOf = ({ safeFetch }: Fetching, { signal }: GenerationCall, { url }: NamedFile, limitBytes: number) =>
  safeFetch.get({ url, limitBytes, signal }).catch((error: unknown) => broken(error, signal));

const isData = (url: string) => /^data:/i.test(url);

function dataOf(url: string): { bytes: Buffer; mime: string } {
  const [, mime = "", content] = /^data:([^;,]*)[^,]*;base64,(.+)$/is.exec(url) ?? [];
  const bytes = Buffer.from(content ?? "", "base64");
  if (bytes.length === 0) throw new UpstreamFailure("unavailable", "an empty file");
  return { bytes, mime };
}
