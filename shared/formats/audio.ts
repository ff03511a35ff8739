import { z } from "zod";
import { ServiceError } from "#errors";
import { type JsonObject, object, omitNullish } from "#json";
import { refuse, validate } from "./errors.ts";
import { type FormFields, ofForm } from "./form-fields.ts";
import { mediaCodec } from "./images.ts";
import { fieldsOfOneModel } from "./routing-fields.ts";
import type { Codec } from "./types.ts";
import { checkShape } from "./uploads.ts";

/** OpenAI's `POST /v1/audio/speech`; the model's own parameters are additional top-level fields. */
export const speechRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    input: z.string().min(1).describe("The text to speak"),
    voice: z
      .union([z.string().min(1), z.object({ id: z.string().min(1) })])
      .nullish()
      .describe("One of the model's voices; its `x_input_schema` lists them"),
    response_format: z.string().min(1).nullish().describe("One of the model's formats, such as `mp3` or `wav`"),
    stream_format: z
      .enum(["audio", "sse"])
      .nullish()
      .describe("`audio` (default): the bytes; `sse`: events with the audio in base64"),
    ...fieldsOfOneModel,
  })
  .meta({ id: "SpeechRequest" });

/** A call of an audio route as a job: the body of `POST /v1/media/generations` plus the response format. */
export interface AudioCall {
  readonly model: string;
  readonly input: JsonObject;
  readonly response_format?: string;
  /** Set for speech that is sent while it is generated. */
  readonly stream?: SpeechStream;
  /** Routing fields, parsed like those of every call. */
  readonly provider?: unknown;
  readonly models?: unknown;
}

export type SpeechStream = "audio" | "sse";

/**
 * Converts a speech request. If the response is stored for replay (`isStored`), it must be complete, so bytes are not
 * streamed; events cannot be replayed.
 */
export function speechCall(body: unknown, isStored: boolean): AudioCall {
  checkShape(body);
  const request = validate(speechRequest, body);
  const { model, input: text, voice, response_format, stream_format, provider, models, ...own } = request;
  const stream = stream_format === "sse" ? "sse" : isStored ? undefined : "audio";
  const input = {
    ...own,
    text,
    voice: typeof voice === "object" ? voice?.id : voice,
    format: response_format,
  };
  return {
    model,
    input: omitNullish(input),
    ...(response_format != null && { response_format }),
    ...(stream && { stream }),
    ...omitNullish({ provider, models }),
  };
}

/** Formats whose bytes have no signature. */
const unsignedTypes: ReadonlyMap<unknown, string> = new Map([
  ["pcm", "audio/pcm"],
  ["mulaw", "audio/basic"],
]);

/** `detected` is the type by the first bytes, if they have a signature. */
export const audioType = (detected: string | undefined, format: unknown): string =>
  detected ?? unsignedTypes.get(format) ?? "application/octet-stream";

/**
 * The JSON that an audio route answers for the stored answer of its job. Undefined if it answers audio or text. `format` is
 * the one that the caller asked for.
 */
export const audioJson = (answer: JsonObject, format: string | undefined): JsonObject | undefined =>
  format === "json" || format === "verbose_json" ? object(answer["output"]) : undefined;

const transcriptFormats = ["json", "text", "srt", "verbose_json", "vtt"] as const;

/** The fields of the form of `POST /v1/audio/transcriptions`, except its file. */
export const transcriptionRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    response_format: z
      .enum(transcriptFormats)
      .optional()
      .describe("`json` and `text` work with every model, the others only if its `x_input_schema` lists them"),
    temperature: z.coerce.number().optional(),
    stream: z.enum(["true", "false"]).optional().describe("Only `false`"),
  })
  .meta({ id: "TranscriptionRequest" });

/** Converts the form without its file. `own` contains the fields that the route adds. */
export function transcriptionCall(fields: FormFields, own: JsonObject = {}): AudioCall {
  const { model, response_format = "json", stream, ...input } = validate(transcriptionRequest, ofForm(fields));
  if (stream === "true") refuse("stream", "transcripts are not streamed");
  // Every model's text can be returned in these formats.
  const isPlain = response_format === "json" || response_format === "text";
  const format = isPlain ? undefined : response_format;
  return { model, input: omitNullish({ ...input, format, ...own }), response_format };
}

/** Fields of the job's input that have another name on the audio routes. */
const routeNames: Readonly<Record<string, string>> = { text: "input", format: "response_format" };

/** Renames the job's input fields in errors to the body fields that the caller knows. */
function inRouteNames(error: ServiceError): ServiceError {
  const [, field] = /^input\.([^.[]+)/.exec(error.param ?? "") ?? [];
  if (field === undefined) return error;
  const name = routeNames[field] ?? field;
  const rest = (error.param ?? "").slice("input.".length + field.length);
  const message = error.message.replace(error.param ?? "", name + rest).replace(`"${field}"`, `"${name}"`);
  return new ServiceError({ ...error.fields(), param: name + rest, message }, error);
}

export const audioCodec: Codec = {
  ...mediaCodec,
  parse(body, bodyBytes) {
    const { response_format: format, stream } = object(body);
    return {
      ...mediaCodec.parse(body, bodyBytes),
      ...(typeof format === "string" && { answerFormat: format }),
      ...(stream !== undefined && { stream: true }),
      ...(stream === "audio" && { isBinary: true }),
    };
  },
  error: (error, requestId) => mediaCodec.error(inRouteNames(error), requestId),
};
