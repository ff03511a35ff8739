import { insufficientBalance, invalidValue } from "#errors";
import { type Format, formedRequest } from "#formats";
import { isSet, object } from "#json";
import type { CallContext } from "../run-call/context.ts";
import type { Candidate } from "../upstreams/index.ts";

/** The estimate by bytes may be too low by this factor: code and other scripts take more tokens than English. */
const estimateMargin = 1.25;
/**
 * The estimate may also be too high, so the margin never cuts an answer below the first of these, nor the estimate below the
 * second.
 */
const [leastByMargin, leastByEstimate] = [8_192, 1_024];

/**
 * The output cap for one upstream, covered by the hold. If the caller set none, it is lowered to the remaining context,
 * because some servers refuse a prompt and cap that exceed it together, or it is not sent at all.
 */
export function capFor(call: CallContext, { upstream, target }: Candidate, spoken: Format): number | undefined {
  const { inputEstimate } = call.payload;
  const { model, outputCap: cap, isCapDefault } = target;
  const { default_cap, min_response_cap } = upstream.quirks;
  if (isCapDefault) {
    if (default_cap === "omit") return undefined;
    const remaining = model.contextLength - inputEstimate;
    const withMargin = model.contextLength - Math.ceil(inputEstimate * estimateMargin);
    return Math.min(cap, Math.max(withMargin, Math.min(remaining, leastByMargin), leastByEstimate));
  }
  if (spoken === "responses" && cap < min_response_cap) refuseCap(call, min_response_cap);
  return cap;
}

function refuseCap({ payload: { format = "chat" }, request: given }: CallContext, minimum: number): never {
  const request = format === "gemini" ? object(formedRequest(given)) : given;
  const field = capFields[format].find(({ holder, name }) => {
    const fields = holder === undefined ? request : object(request[holder]);
    return isSet(fields[name]);
  });
  if (!field)
    throw insufficientBalance(`The balance does not cover ${minimum} output tokens, the least of this model.`);
  const param = field.holder === undefined ? field.name : `${field.holder}.${field.name}`;
  throw invalidValue(param, `${param} must be at least ${minimum} for this model.`);
}

interface CapField {
  readonly holder?: string;
  readonly name: string;
}

const capFields: Readonly<Record<Format, readonly CapField[]>> = {
  chat: [{ name: "max_completion_tokens" }, { name: "max_tokens" }],
  messages: [{ name: "max_tokens" }],
  responses: [{ name: "max_output_tokens" }],
  gemini: [{ holder: "generationConfig", name: "maxOutputTokens" }],
};
