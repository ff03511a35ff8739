import type { JsonObject } from "#formats";
import { ignoredParams } from "../conversion/index.ts";
import type { Provider } from "../providers/index.ts";
import type { Answer, CallContext } from "../run-call/context.ts";

interface JsonCall {
  /** Sent to the upstream, with the upstream's name for the model. */
  readonly body: JsonObject;
  /** Fields of the request that mean nothing here, for `x-ignored-params`. */
  readonly ignored: readonly (readonly [name: string, value: unknown])[];
  /** Checks the upstream's answer. Throws `upstreamError` if it does not fit the request. */
  readonly answer: (response: JsonObject) => Omit<Answer, "headers">;
}

/** The work of an endpoint that answers JSON with JSON: `method` is asked of the first upstream that has it. */
export const jsonCall =
  (method: keyof Pick<Provider, "embed" | "moderate" | "rerank">, prepare: (call: CallContext) => JsonCall) =>
  async (call: CallContext): Promise<Answer> => {
    const { upstreams, disconnected, log } = call;
    const { body, ignored, answer } = prepare(call);
    const supports = (provider: Provider) => provider[method] !== undefined;
    const response = await upstreams.once({ ...call, supports }, async ({ upstream, model }, signal) => {
      // After a failure no other upstream is tried for a disconnected caller.
      disconnected.throwIfAborted();
      return upstream.provider[method]?.({ model, body: { ...body, model }, signal, log });
    });
    const params = ignoredParams();
    for (const [name, value] of ignored) params.add(name, value);
    const names = params.names();
    return {
      ...answer(response ?? {}),
      ...(names.length > 0 && { headers: { "x-ignored-params": names.join(", ") } }),
    };
  };
