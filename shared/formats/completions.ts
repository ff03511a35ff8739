import { z } from "zod";
import { isSet, type JsonObject, refuseDeep } from "#json";
import { chatCodec, chatRequest } from "./chat/codec.ts";
import { refuse, validate } from "./errors.ts";
import { modelOrModels, routingFields } from "./routing-fields.ts";
import type { Codec } from "./types.ts";

const { model, stream, max_tokens, temperature, top_p, n, stop, seed, stream_options } = chatRequest.shape;
const prompt = z.string().min(1, "must not be empty");

/** OpenAI's legacy completions. Unknown fields pass through, as in chat. */
export const completionsRequest = z
  .looseObject({
    model,
    prompt: z.union([prompt, z.array(prompt).length(1, "must hold one prompt")]),
    stream,
    max_tokens,
    temperature,
    top_p,
    n,
    stop,
    seed,
    stream_options,
    ...routingFields,
    best_of: z.int().min(1).max(1, "must not be more than 1").nullish(),
    echo: z.literal(false, "is not supported").nullish(),
  })
  .meta({
    id: "CompletionsRequest",
    description: "The prompt becomes a user message",
    override: modelOrModels,
  });

/** Fields that a chat model cannot honor for a prompt, or that a plain-text response cannot represent. */
const refused: readonly string[] = ["suffix", "logprobs", "messages", "tools", "functions", "modalities"];

const ownFields: readonly string[] = ["prompt", "best_of", "echo", "suffix", "logprobs"];

export function completionsToChat(request: JsonObject): JsonObject {
  const fields = Object.entries(request).filter(([name]) => !ownFields.includes(name));
  const [prompt] = [request["prompt"]].flat();
  return { ...Object.fromEntries(fields), messages: [{ role: "user", content: prompt }] };
}

export const completionsCodec: Codec = {
  ...chatCodec,
  parse(body, bodyBytes) {
    refuseDeep(body);
    const request = validate(completionsRequest, body);
    for (const field of refused) if (isSet(request[field])) refuse(field, "is not supported here");
    return chatCodec.parse(completionsToChat(request), bodyBytes);
  },
};
