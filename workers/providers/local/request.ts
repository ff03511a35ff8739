import { z } from "zod";
import { invalidValue, noCapacity, rateLimited, type ServiceError, upstreamError, upstreamTimeout } from "#errors";
import type { JsonObject } from "#json";
import { refusal } from "../provider.ts";

const textPart = z.object({ type: z.literal("text"), text: z.string() });
const imagePart = z.object({
  type: z.literal("image_url"),
  image_url: z.union([z.string(), z.object({ url: z.string() })]),
});
const audioPart = z.object({
  type: z.literal("input_audio"),
  input_audio: z.object({ data: z.string(), format: z.string().default("wav") }),
});
const filePart = z.object({ type: z.literal("file"), file: z.object({ file_data: z.string() }) });
const otherPart = z.object({ type: z.string() });
const part = z.union([textPart, imagePart, audioPart, filePart, otherPart]);

const functionTool = z.object({
  type: z.literal("function"),
  function: z.object({
    name: z.string().regex(/^[\w-]{1,64}$/),
    parameters: z.record(z.string(), z.unknown()).nullish(),
  }),
});

/** The fields of a chat request that the local model reads; others are ignored. */
export const chatRequest = z.object({
  model: z.string(),
  messages: z.array(
    z.object({
      role: z.string(),
      name: z.string().nullish(),
      content: z.union([z.string(), z.array(part)]).nullish(),
      tool_calls: z.array(z.object({ id: z.string(), function: z.object({ name: z.string() }).nullish() })).nullish(),
      tool_call_id: z.string().nullish(),
    }),
  ),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  n: z.int().positive().nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  seed: z.int().nullish(),
  tools: z.array(z.union([functionTool, otherPart])).nullish(),
  tool_choice: z
    .union([z.enum(["none", "auto", "required"]), z.object({ function: z.object({ name: z.string() }) })])
    .nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: z
    .union([
      z.object({
        type: z.literal("json_schema"),
        json_schema: z.object({ schema: z.record(z.string(), z.unknown()) }),
      }),
      z.object({ type: z.enum(["text", "json_object"]) }),
    ])
    .nullish(),
});

export type ChatRequest = z.infer<typeof chatRequest>;
export type Message = ChatRequest["messages"][number];
export type Part = z.infer<typeof part>;

const noMessage: Message = { role: "user", content: "" };
export const lastUserMessage = ({ messages }: ChatRequest): Message =>
  messages.findLast(({ role }) => role === "user") ?? noMessage;

const quotedCharacters = 400;
export const shorten = (text: string): string => text.slice(0, quotedCharacters);
export const quote = (text: string): string => `"${shorten(text)}"`;

/** Throws `refused` naming the first invalid field. */
export function parseRequest<T>(schema: z.ZodType<T>, body: JsonObject): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = issue?.path.reduce<string>((path, key) => {
    if (typeof key === "number") return `${path}[${key}]`;
    return path === "" ? String(key) : `${path}.${String(key)}`;
  }, "");
  throw refusal(`${param || "The request"}: ${issue?.message}.`, param || undefined);
}

/** The text of a message; its parts are separate lines. */
export function textOf({ content }: Message): string {
  if (typeof content === "string") return content;
  return (content ?? []).flatMap((part) => ("text" in part ? [part.text] : [])).join("\n");
}

/** A ServiceError goes to the caller without counting as a failure of the upstream, so no breaker opens. */
const errors: Readonly<Record<string, (param: string) => ServiceError>> = {
  400: (param) => invalidValue(param, "This is the error 400 that you asked for."),
  429: () => rateLimited("This is the error 429 that you asked for.", 1),
  502: () => upstreamError("This is the error 502 that you asked for."),
  503: () => noCapacity("This is the error 503 that you asked for.", 1),
  504: () => upstreamTimeout("This is the error 504 that you asked for."),
};

const maxDelayMs = 600_000;
const maxTokens = 100_000;

/**
 * The effects of a message or prompt that consists of a trigger. Calls ignore those that do not concern them. Throws the
 * error that `error:<status>` requests. `param` is the field with the text.
 */
export function triggerOf(text: string, param: string) {
  const [, kind, digits] = /^(error|slow|stream-error|tokens|deliver):(\d{1,9})$/.exec(text) ?? [];
  const count = Number(digits);
  if (kind === "error")
    throw errors[count]?.(param) ?? refusal(`error: takes one of ${Object.keys(errors).join(", ")}.`, param);
  return {
    /** Delay of the first token, or of the files. */
    delayMs: kind === "slow" ? Math.min(count, maxDelayMs) : undefined,
    /** Ends the stream after this many chunks, and fails a JSON answer. */
    breakAfterChunks: kind === "stream-error" ? count : undefined,
    /** The text that the model says. */
    speech: kind === "tokens" ? "token ".repeat(Math.min(count, maxTokens)).trimEnd() : undefined,
    /** Maximum number of images, or of seconds of video. */
    deliver: kind === "deliver" ? count : undefined,
  };
}

export const brokenOff = () => upstreamError("This is the broken stream that you asked for.");
