import { readLines } from "#batches";
import type { JsonObject } from "#json";
import type { HttpAnswer } from "#platform/http";
import { UpstreamFailure } from "../provider.ts";
import { decompressed } from "./read-answer.ts";
import { parseLargeAnswer, vectorValues } from "./untrusted-json.ts";

/** The limit of one result, as of an answer. */
const lineLimitBytes = 64 * 1024 * 1024;

/** The id of a batch that was submitted. */
export function idOf({ id }: JsonObject): string {
  if (typeof id === "string" && id !== "") return id;
  throw new UpstreamFailure("unavailable", "a batch without an id");
}

/** Reads the status of a batch. */
export function isAmong(status: unknown, ended: readonly string[], open: readonly string[]): boolean {
  if (typeof status === "string" && [...ended, ...open].includes(status)) return ended.includes(status);
  throw new UpstreamFailure("unavailable", "a batch in an unknown state");
}

/** Yields the lines of a file of results as they arrive. A line that cannot be read is left out, like one that did not run. */
export async function* readResults(answer: HttpAnswer): AsyncGenerator<readonly [line: JsonObject, bytes: number]> {
  for await (const { content } of readLines(decompressed(answer), { line: 0, byte: 0 }, lineLimitBytes)) {
    if (!content) continue;
    try {
      yield [await parseLargeAnswer([content], vectorValues), content.length];
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
    }
  }
}
