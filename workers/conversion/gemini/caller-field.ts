const inConfig = (field: string) => `generationConfig.${field}`;
/** By the chat field that an error names, the caller's field. */
export const callerFields: Readonly<Record<string, string>> = {
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
};
