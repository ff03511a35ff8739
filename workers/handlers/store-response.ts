import { type JsonObject, list, text } from "#json";
import { unlessAborted } from "#platform/concurrency/unless-aborted";
import type { StoreState } from "../conversion/index.ts";
import type { CallContext } from "../run-call/context.ts";

/** Maximum delay of an answer when the store hangs. */
const storeTimeoutMs = 5_000;
const storable: readonly unknown[] = ["completed", "incomplete"];

/** The storage state that a Responses answer reports. Returns undefined if there is nothing to report. */
export function responseState({ payload, request }: Pick<CallContext, "payload" | "request">): StoreState | undefined {
  const { format, previousResponseId } = payload;
  if (format !== "responses") return undefined;
  const store = request["store"] !== false;
  if (!store && previousResponseId === undefined) return undefined;
  return { store, ...(previousResponseId !== undefined && { previousResponseId }) };
}

/**
 * Stores a response before its last byte is written, so that the caller's next request finds it. If storing fails, the
 * response is sent anyway. If the call then does not end as a success, the stored response is unused, because nobody learns
 * its id.
 */
export async function storeResponse(call: CallContext, response: JsonObject | undefined): Promise<void> {
  const { responses, payload, request, log } = call;
  if (!response || !storable.includes(response["status"]) || !responseState(call)?.store) return;
  const { input } = request;
  const stored = {
    input: typeof input === "string" ? [{ type: "message", role: "user", content: input }] : list(input),
    response,
  };
  const { account, requestId } = payload;
  try {
    const signal = AbortSignal.timeout(storeTimeoutMs);
    const isStored = await unlessAborted(signal, () => responses.put({ account, requestId }, stored));
    if (!isStored) log.info({ account, response: text(response["id"]) }, "a response was too large to be stored");
  } catch (error) {
    log.warn({ err: (error as Error).message }, "a response was not stored");
  }
}
