import { ownFieldBy } from "../caller-field.ts";

/** As errors of the way out name the fields that a request has in chat. */
export const ownField = ownFieldBy({
  stop: "stop_sequences",
  tools: "tools",
  tool_choice: "tool_choice",
  parallel_tool_calls: "tool_choice.disable_parallel_tool_use",
  response_format: "output_config.format",
  reasoning_effort: "thinking",
  messages: "messages",
  max_completion_tokens: "max_tokens",
});
