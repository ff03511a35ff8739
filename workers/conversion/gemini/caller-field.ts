import { ownFieldBy } from "../caller-field.ts";

const inConfig = (field: string) => `generationConfig.${field}`;
/** As errors of the way out name the fields that a request has in chat. */
export const ownField = ownFieldBy({
  messages: "contents",
  max_tokens: inConfig("maxOutputTokens"),
  max_completion_tokens: inConfig("maxOutputTokens"),
  n: inConfig("candidateCount"),
  stop: inConfig("stopSequences"),
  temperature: inConfig("temperature"),
  top_p: inConfig("topP"),
  seed: inConfig("seed"),
  presence_penalty: inConfig("presencePenalty"),
  frequency_penalty: inConfig("frequencyPenalty"),
  logprobs: inConfig("responseLogprobs"),
  top_logprobs: inConfig("logprobs"),
  tools: "tools",
  tool_choice: "toolConfig.functionCallingConfig",
  response_format: inConfig("responseSchema"),
  reasoning_effort: inConfig("thinkingConfig"),
  service_tier: "serviceTier",
});
