import { ownFieldBy } from "../caller-field.ts";

/** As errors of the way out name the fields that a request has in chat. */
export const ownField = ownFieldBy({
  messages: "input",
  max_tokens: "max_output_tokens",
  max_completion_tokens: "max_output_tokens",
  logprobs: "include",
  tools: "tools",
  response_format: "text.format",
  reasoning_effort: "reasoning.effort",
  verbosity: "text.verbosity",
});
