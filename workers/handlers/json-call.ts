import type { Model } from "#catalog";
import type { JsonObject } from "#json";
import { ignoredParams } from "../conversion/index.ts";
import { answerMemory, type Provider } from "../providers/index.ts";
import type { Answer, CallContext } from "../run-call/context.ts";
import { headersOf } from "./convert.ts";

interface JsonCall {
  /** Sent to the upstream, with the upstream's name for the model. */
  readonly body: JsonObject;
  /** Fields of the request that mean nothing here, for `x-ignored-params`. */
  readonly ignored: readonly (readonly [name: string, value: unknown])[];
  /** The upstream's answer is not expected to be longer. Memory for it is reserved before the upstream is called. */
  readonly answerBytes?: number;
  /** Checks the upstream's answer for the model. Throws `upstreamError` if it does not fit the request. */
  readonly answer: (response: JsonObject, model: Model) => Omit<Answer, "headers"> | Promise<Omit<Answer, "headers">>;
}

/** Creates the handler of an endpoint that answers JSON with JSON: `method` is called on the first upstream that has it. */
export const jsonCall =
  (method: keyof Pick<Provider, "embed" | "moderate" | "rerank">, prepare: (call: CallContext) => JsonCall) =>
  async (call: CallContext): Promise<Answer> => {
    const { upstreams, log } = call;
    const { body, ignored, answerBytes = 0, answer } = prepare(call);
    const reserveMemory = reserveAhead(call.reserveMemory, answerMemory(answerBytes));
    const supports = (provider: Provider) => provider[method] !== undefined;
    const answered = await upstreams.once({ ...call, supports }, async ({ upstream, model, target }, signal, span) => {
      const response = await upstream.provider[method]?.({
        model,
        body: { ...body, model },
        signal,
        reserveMemory,
        log,
        span,
      });
      return answer(response ?? {}, target.model);
    });
    const params = ignoredParams();
    for (const [name, value] of ignored) params.add(name, value);
    return { ...answered, ...headersOf(call, params.names()) };
  };

/** Reserves memory now. What is reserved later comes out of it first. */
function reserveAhead(reserveMemory: CallContext["reserveMemory"], bytes: number): CallContext["reserveMemory"] {
  reserveMemory(bytes);
  let unused = bytes;
  return (wanted) => {
    const used = Math.min(unused, wanted);
    unused -= used;
    reserveMemory(wanted - used);
  };
}
