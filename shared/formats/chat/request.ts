import { z } from "zod";

const tokenCap = z.int().positive().max(1e9).nullish();
const contentPart = z.looseObject({ type: z.string() });

const message = z
  .looseObject({
    role: z.enum(["system", "developer", "user", "assistant", "tool"]),
    content: z.union([z.string(), z.array(contentPart)]).nullish(),
  })
  .meta({ id: "Message" });

/** docs/api/inference.md, "ChatRequest"; unknown fields pass through. */
export const chatRequest = z
  .looseObject({
    model: z.string().min(1).describe("provider/model"),
    messages: z.array(message).min(1),
    stream: z.boolean().nullish().describe("true returns server-sent events"),
    max_tokens: tokenCap,
    max_completion_tokens: tokenCap,
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    n: z.int().min(1).max(128).nullish(),
    stop: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
    seed: z.int().nullish(),
    tools: z
      .array(z.looseObject({ type: z.string() }))
      .nullish()
      .describe("Works where the model supports tools"),
    tool_choice: z.union([z.string(), z.looseObject({})]).nullish(),
    parallel_tool_calls: z.boolean().nullish(),
    response_format: z.looseObject({ type: z.string() }).nullish().describe("JSON mode, where the model supports it"),
    stream_options: z.looseObject({}).nullish(),
    logprobs: z.boolean().nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
  })
  .meta({ id: "ChatRequest" });

export type ChatRequest = z.infer<typeof chatRequest>;

/** Chat fields by which providers accept a web search. */
export const searchFields: readonly string[] = ["web_search_options", "search_parameters", "enable_search", "plugins"];
