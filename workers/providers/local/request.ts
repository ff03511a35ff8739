import { z } from "zod";
import { type JsonObject, refusal } from "../provider.ts";

const textPart = z.object({ type: z.literal("text"), text: z.string() });
const imagePart = z.object({
  type: z.literal("image_url"),
  image_url: z.union([z.string(), z.object({ url: z.string() })]),
});
const otherPart = z.object({ type: z.string() });

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
      content: z.union([z.string(), z.array(z.union([textPart, imagePart, otherPart]))]).nullish(),
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
