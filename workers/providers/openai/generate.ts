import type { Task } from "#catalog";
import { type Generated, type GenerationCall, refusal, UpstreamFailure } from "../provider.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { speech, transcription } from "./audio.ts";
import { images } from "./images.ts";
import { video } from "./video.ts";

type Generate = (client: ProviderClient, call: GenerationCall) => Promise<Generated>;

const tasks: Readonly<Partial<Record<Task, Generate>>> = { images, speech, transcription, video };

/**
 * Calls that generate or read files. The input is sent under the provider's names; `text`, `format`, `duration`, `resolution`
 * and `image` stand for `input`, `response_format`, `seconds`, `size` and `input_reference` where the task has those.
 */
export async function generate(client: ProviderClient, call: GenerationCall): Promise<Generated> {
  refuseProviderFiles(call.input, call.task === "images" ? "" : "input");
  refuseUploads(call);
  const run = tasks[call.task];
  if (!run) throw new UpstreamFailure("misconfigured", `this kind of upstream has no ${call.task}`);
  try {
    return await run(client, call);
  } catch (error) {
    throw inCallersNames(error, call);
  }
}

const providerFileFields: readonly string[] = ["file_id", "file_ids", "remix_video_id"];

/** Files that are stored at the provider under the operator's key may be another tenant's. */
function refuseProviderFiles(value: unknown, at: string): void {
  if (typeof value !== "object" || value === null) return;
  for (const [field, each] of Object.entries(value)) {
    const param = Array.isArray(value) ? `${at}[${field}]` : at ? `${at}.${field}` : field;
    if (providerFileFields.includes(field))
      throw refusal(`${field}: the provider's own store cannot be used; upload the file.`, param);
    refuseProviderFiles(each, param);
  }
}

/** Only fields of a form carry bytes: the id of an upload in any other place would reach the provider as text. */
function refuseUploads({ task, input, uploads }: GenerationCall): void {
  const sent = task === "speech" ? [] : Object.values(input).flat();
  for (const { id, param } of uploads.values())
    if (!sent.includes(id)) throw refusal(`${param}: takes no upload.`, param);
}

const callersNames: Readonly<Record<string, string>> = {
  input: "text",
  response_format: "format",
  seconds: "duration",
  size: "resolution",
  input_reference: "image",
};

/** A provider's refusal names its own parameter, which the caller knows as a field of `input`. */
function inCallersNames(error: unknown, { task, input }: GenerationCall): unknown {
  if (!(error instanceof UpstreamFailure) || error.kind !== "refused" || task === "images") return error;
  const { param } = error;
  if (param === undefined || param.startsWith("input.")) return error;
  const name = callersNames[param];
  return error.withParam(`input.${name !== undefined && name in input && !(param in input) ? name : param}`);
}
