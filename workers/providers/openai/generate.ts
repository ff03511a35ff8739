import { createSafeFetch } from "#platform/safe-fetch";
import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { images } from "./images.ts";
import { speech } from "./speech.ts";
import { transcription } from "./transcription.ts";
import { video } from "./video.ts";

/**
 * Calls that make files. The input goes to the provider in its own names; `text`, `format`, `duration`, `resolution` and
 * `image` stand for `input`, `response_format`, `seconds`, `size` and `input_reference` where the task has those.
 */
export function createGeneration(provider: ProviderClient) {
  const safeFetch = createSafeFetch({ clock: provider.clock, trusted: provider.origin });
  const run = (call: GenerationCall): Promise<Generated> => {
    switch (call.task) {
      case "images":
        return images(provider, safeFetch, call);
      case "speech":
        return speech(provider, call);
      case "transcription":
        return transcription(provider, call);
      case "video":
        return video(provider, call);
      case "music":
        throw new UpstreamFailure("misconfigured", "this kind of upstream makes no music");
    }
  };
  return {
    async generate(call: GenerationCall): Promise<Generated> {
      refuseStored(call.input, call.task === "images" ? "" : "input");
      refuseUploads(call);
      try {
        return await run(call);
      } catch (error) {
        throw inCallersNames(error, call);
      }
    },
    close: () => safeFetch.close(),
  };
}

const stored: readonly string[] = ["file_id", "file_ids", "remix_video_id"];

/** What lies at the provider under the operator's key may be another tenant's. */
function refuseStored(value: unknown, at: string): void {
  if (typeof value !== "object" || value === null) return;
  for (const [field, each] of Object.entries(value)) {
    const param = Array.isArray(value) ? `${at}[${field}]` : at ? `${at}.${field}` : field;
    if (stored.includes(field))
      throw new UpstreamFailure("refused", `${field}: the provider's own store cannot be used; upload the file.`, {
        param,
      });
    refuseStored(each, param);
  }
}

/** Bytes go in fields of a form: an id elsewhere would reach the provider as a text that it does not know. */
function refuseUploads({ task, input, uploads }: GenerationCall): void {
  const placed = task === "speech" ? [] : Object.values(input).flat();
  for (const { id, param } of uploads.values())
    if (!placed.includes(id)) throw new UpstreamFailure("refused", `${param}: takes no upload.`, { param });
}

const callersNames: Readonly<Record<string, string>> = {
  input: "text",
  response_format: "format",
  seconds: "duration",
  size: "resolution",
  input_reference: "image",
};

/** A provider's refusal names its own parameter: the caller knows it as a field of `input`. */
function inCallersNames(error: unknown, { task, input }: GenerationCall): unknown {
  if (!(error instanceof UpstreamFailure) || error.kind !== "refused") return error;
  const { message, status, param } = error;
  if (task === "images" || param === undefined || param.startsWith("input.")) return error;
  const theirs = callersNames[param];
  const field = theirs !== undefined && theirs in input && !(param in input) ? theirs : param;
  return new UpstreamFailure("refused", message, { ...(status !== undefined && { status }), param: `input.${field}` });
}
