import { z } from "zod";
import { modelOrModels, routingFields } from "../routing-fields.ts";

/** The value of `include` that requests the log probabilities of the output. */
export const logprobsInclude = "message.output_text.logprobs";

const flag = z.boolean().nullish();
const typed = z.looseObject({ type: z.string() });

const item = z.looseObject({ type: z.string().nullish(), role: z.string().nullish() }).meta({ id: "ResponsesItem" });

export const responsesRequest = z
  .looseObject({
    model: z.string().min(1).describe("The provider's own id, or provider/model"),
    input: z.union([z.string(), z.array(item).min(1)]),
    instructions: z.string().nullish(),
    stream: flag.describe("true returns server-sent events"),
    max_output_tokens: z.int().positive().max(1e9).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    tools: z.array(typed).nullish().describe("Functions and other tools that the caller runs"),
    tool_choice: z.union([z.string(), typed]).nullish(),
    parallel_tool_calls: flag,
    text: z.looseObject({ format: typed.nullish(), verbosity: z.string().nullish() }).nullish(),
    reasoning: z
      .looseObject({ effort: z.string().nullish(), summary: z.string().nullish(), mode: z.string().nullish() })
      .nullish(),
    previous_response_id: z
      .string()
      .nullish()
      .describe("Id of a stored response of the account that the input continues"),
    include: z.array(z.string()).nullish(),
    top_logprobs: z.int().min(0).max(20).nullish(),
    metadata: z.looseObject({}).nullish(),
    store: flag.describe("Unless false, the response is stored for the account for 24 hours"),
    background: flag.describe("true answers immediately; the response is polled, or streamed with `stream`"),
    service_tier: z.string().nullish(),
    stream_options: z.looseObject({}).nullish(),
    prompt_cache_options: z.looseObject({ ttl: z.string().nullish() }).nullish(),
    ...routingFields,
  })
  .meta({ id: "ResponsesRequest", override: modelOrModels });

export type ResponsesRequest = z.infer<typeof responsesRequest>;
