import { isProviderCode } from "#errors";
import type { UpstreamFailure } from "../provider.ts";

/** Messages with which servers say that prompt and output cap exceed the context, most of them without a code. */
const contextTexts = [
  // OpenAI, vLLM, DeepSeek, Fireworks, Mistral, xAI.
  /maximum (context|prompt|input) length/,
  // Groq; Anthropic; Z.ai; MiniMax.
  /reduce the length of the messages/,
  /prompt (is too long|exceeds max length)|input length and `?max_tokens`? exceed/,
  /context (length|window|limit) (is |was )?exceed|exceeds? (the )?(context|limit of context)/,
  // Google; Moonshot; Together.
  /input token count [^a-z]{0,40}exceeds/,
  /exceeded model token limit/,
  /tokens[^a-z]{1,8}(max_new_tokens[^a-z]{1,8})?must be <= ?\d/,
];

/** Limits of a server, not of the model: other servers of the same model may differ. */
const hostTexts = [
  /\bmax(_completion|_output|_new)?_tokens\b.{0,120}(less than|at most|up to|exceed|<=|too large|range|maximum)/,
  /\bmust be auto\b|\bmust have stream\b|\bunavailable now\b/,
  /\b(is|are) not supported\b|\bdoes(n't| not) support\b|\bunsupported\b/,
  /extra inputs are not permitted|unrecognized request argument|unknown (parameter|field)/,
  /\btoo (large|long|many)\b|\bexceeds? the (size|maximum|limit)\b/,
];
const hostCodes: readonly unknown[] = [
  "context_length_exceeded",
  "string_above_max_length",
  "image_too_large",
  "unsupported_parameter",
  "unsupported_value",
  // The model's fault, not the caller's: another server may get a better answer from it.
  "tool_use_failed",
  "json_validate_failed",
];

const isIn = (texts: readonly RegExp[], message: string): boolean => {
  const lower = message.toLowerCase();
  return texts.some((each) => each.test(lower));
};

export const isContextLimit = (message: string): boolean => isIn(contextTexts, message);

/** Verdicts on the content: such a request is not repeated at another server. */
const policyCodes: readonly unknown[] = [
  "content_policy_violation",
  "content_filter",
  "moderation_blocked",
  "invalid_prompt",
  "image_content_policy_violation",
];

/** The code of a provider's refusal for callers, and whether the limit is that host's own. */
export function refusalOf(
  status: number,
  code: unknown,
  message: string,
): Pick<UpstreamFailure, "code" | "isHostLimit"> {
  const known = isProviderCode(code) ? code : isContextLimit(message) ? "context_length_exceeded" : undefined;
  const isLimit = status === 413 || hostCodes.includes(known) || isIn(hostTexts, message);
  return { code: known, isHostLimit: isLimit && !policyCodes.includes(known) };
}
