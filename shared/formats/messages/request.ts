import { z } from "zod";
import { modelOrModels, routingFields } from "../routing-fields.ts";

const block = z.looseObject({ type: z.string() });
const content = z.union([z.string(), z.array(block)]);
const flag = z.boolean().nullish();

const message = z
  .looseObject({ role: z.enum(["user", "assistant", "system"]), content })
  .meta({ id: "MessagesMessage" });

const fields = {
  model: z.string().min(1).describe("The provider's own id, or provider/model"),
  messages: z.array(message).min(1),
  system: content.nullish(),
  tools: z.array(z.looseObject({ type: z.string().nullish(), name: z.string().nullish() })).nullish(),
  tool_choice: z.looseObject({ type: z.enum(["auto", "any", "tool", "none"]) }).nullish(),
  thinking: z.looseObject({ type: z.string(), budget_tokens: z.int().positive().nullish() }).nullish(),
  output_config: z
    .looseObject({ effort: z.string().nullish(), format: z.looseObject({ type: z.string() }).nullish() })
    .nullish(),
  cache_control: z.looseObject({ type: z.string() }).nullish(),
  ...routingFields,
};

export const messagesRequest = z
  .looseObject({
    ...fields,
    max_tokens: z.int().positive().max(1e9),
    stream: flag.describe("true returns server-sent events"),
    stop_sequences: z.array(z.string()).max(8191).nullish(),
    temperature: z.number().min(0).max(1).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    top_k: z.int().min(0).nullish(),
  })
  .meta({ id: "MessagesRequest", override: modelOrModels });

/** Token counting has no output cap. */
export const countTokensRequest = z.looseObject(fields).meta({ id: "CountTokensRequest", override: modelOrModels });

export type CountTokensRequest = z.infer<typeof countTokensRequest>;
