import { upstreamError } from "#errors";
import { estimateTokens } from "#formats";
import { type JsonObject, object, text } from "#json";
import { completionTokens, finishReasonReader, type StreamWriter, tokenUsage } from "../conversion/index.ts";
import { type Answer, type CallContext, type CountedUsage, FailedWork, failureReason } from "../run-call/context.ts";
import { runsInBackground } from "../run-call/stored-answer.ts";
import { Aborted, isHandedOver } from "../running.ts";
import type { AttemptRecord } from "../upstreams/index.ts";
import { type ConvertedCall, chatRequestOf, convertCall, estimateOf, headersOf, usageOrEstimate } from "./convert.ts";
import { countInput, withoutDenseFiles } from "./count.ts";
import { watchInterruption } from "./interruption.ts";
import { storeResponse } from "./store-response.ts";

/** Answers a text call in the caller's format. */
export async function chat(call: CallContext): Promise<Answer> {
  call.trace?.prompts(() => chatRequestOf(call));
  const fitting = await withoutDenseFiles(call);
  return fitting.payload.stream ? answerStream(fitting) : answerWhole(fitting);
}

/** The call, limited to the target that it was last sent to. */
const atTarget = (call: CallContext): CallContext => {
  const { target } = call.record.candidate ?? {};
  return target ? { ...call, model: target.model, targets: [target] } : call;
};

async function answerWhole(call: CallContext): Promise<Answer> {
  const { reserveMemory, log } = call;
  const convert = await convertCall(call);
  const { converted, finishReason, answered } = await call.upstreams.once(call, async (candidate, signal, span) => {
    const converted = await convert.forCandidate(candidate);
    const { provider } = candidate.upstream;
    const response = await provider.answer({ ...converted.call, signal, reserveMemory, log, span });
    call.trace?.answered(converted.call.format, response);
    const finishReason = finishReasonReader(converted.call.format)(response);
    return { converted, finishReason, answered: converted.answer(response) };
  });
  const { body, counted } = answered;
  noteAnswerId(call.record, body);
  if (finishReason !== undefined) call.record.finishReason = finishReason;
  await storeResponse(call, body);
  return { ...counted, text: JSON.stringify(body), ...headersOf(call, converted.ignored) };
}

async function answerStream(call: CallContext): Promise<Answer> {
  const { upstreams, record, reply, reserveMemory, log, trace } = call;
  const convert = await convertCall(call);
  let converted: ConvertedCall | undefined;
  let stream: StreamWriter | undefined;
  let isNoted = false;
  const interruption = watchInterruption(
    call,
    () => record.attempts.length > 0 && stream?.usage() === undefined && hidesReasoning(atTarget(call)),
  );
  try {
    const items = await upstreams.stream({ ...call, signal: interruption.signal }, async (candidate, signal, span) => {
      // No other upstream is tried for a stream that is only read on for its usage.
      if (interruption.reason() !== undefined) throw interruption.reason();
      converted = await convert.forCandidate(candidate);
      return candidate.upstream.provider.stream({ ...converted.call, signal, reserveMemory, log, span });
    });
    if (!converted) throw new TypeError("a stream of no upstream");
    stream = converted.stream();
    const finishReasonIn = finishReasonReader(converted.call.format);
    const sent = headersOf(call, converted.ignored);
    if (sent.headers) reply.announce(sent.headers);
    for await (const events of items) {
      let written = "";
      for (const event of events) {
        trace?.streamed(converted.call.format, event);
        const text = stream.write(event);
        if (!isNoted && text) noteFirstEvent(record, text);
        isNoted ||= text !== "";
        written += text;
        const finishReason = finishReasonIn(event);
        if (finishReason !== undefined) record.finishReason = finishReason;
      }
      if (interruption.reason() !== undefined) {
        if (stream.usage() !== undefined) break;
        continue;
      }
      if (written) await reply.write(written, stream.outputBytes());
    }
    if (interruption.reason() !== undefined) throw interruption.reason();
    const counted = usageOrEstimate(call, stream.usage(), () => stream?.outputBytes() ?? 0);
    const estimate = estimateOf(call, counted);
    const response = stream.response?.(estimate);
    await storeResponse(call, response);
    const ending = stream.end(estimate);
    if (!runsInBackground(call.payload)) return { ...counted, text: ending };
    if (!response) throw upstreamError("The model's stream ended unexpectedly.");
    if (ending) await reply.write(ending, stream.outputBytes());
    return { ...counted, text: JSON.stringify(response), responseStatus: text(response["status"]), ...sent };
  } catch (error) {
    const reason = failureReason(call.signal, interruption.reason() ?? error);
    // A call that the worker itself ended costs nothing, whatever the provider did.
    const counted = isHandedOver(call.signal) ? undefined : await countDelivered(call, stream, reason);
    const output = runsInBackground(call.payload) ? stream?.itemsSoFar?.() : undefined;
    throw new FailedWork(reason, { counted, output, closing: stream?.fail ?? convert.fail });
  } finally {
    interruption.close();
  }
}

/** Tells whether the provider bills reasoning that the stream does not show, so that only its own count tells the cost. */
function hidesReasoning(call: CallContext): boolean {
  const { model } = call;
  if (!model.hiddenReasoning) return false;
  const effort = chatRequestOf(call)?.["reasoning_effort"];
  // Claude reasons only when it is asked to.
  return effort === undefined ? model.ownedBy !== "anthropic" : effort !== "none";
}

/**
 * The usage to charge for a stream that ended early: what the provider reported, else the input and the output delivered.
 * Returns undefined if nothing was delivered and the stream failed or its API instance died.
 */
async function countDelivered(
  call: CallContext,
  stream: StreamWriter | undefined,
  reason: unknown,
): Promise<CountedUsage | undefined> {
  // The charge covers exactly what Redis accepted of the stream; wait until that is known.
  await call.reply.flush().catch(() => undefined);
  const delivered = call.reply.delivered();
  const cause = reason instanceof Aborted ? reason.cause : undefined;
  // An upstream that failed before a stream began is not paid.
  const wasAtWork = stream !== undefined || call.record.attempts.at(-1)?.outcome === "cancelled";
  const isCharged =
    delivered > 0 || (cause === "disconnected" && wasAtWork) || (cause === "deadline" && stream !== undefined);
  if (!isCharged) return undefined;
  const output = estimateTokens(delivered);
  const reported = tokenUsage(stream?.usage());
  if (reported && completionTokens(reported) >= output) return { usage: reported, estimated: false };
  // Usage that was reported with the prompt does not count the output yet.
  const partial = reported ?? tokenUsage(stream?.usage(true));
  const usage = partial ?? { input: await inputTokensOf(call), output: 0 };
  return { usage: { ...usage, output: Math.max(usage.output, output) }, estimated: true };
}

/** Runs after the call has ended, so the call's signals do not stop it and it is not recorded as an attempt. */
async function inputTokensOf(call: CallContext): Promise<number> {
  const { signal } = new AbortController();
  try {
    return (await countInput({ ...atTarget(call), signal, record: { attempts: [] } })).tokens;
  } catch (error) {
    call.log.warn({ err: error }, "the input tokens of an interrupted stream are estimated from its bytes");
    return call.payload.inputEstimate;
  }
}

/**
 * Records the id of an answer or of a stream's first event, wherever its format has it; callers use it to look up the cost.
 */
function noteAnswerId(record: AttemptRecord, answer: JsonObject): void {
  const { id, responseId, response, message } = answer;
  const found = [id, responseId, object(response)["id"], object(message)["id"]].find(
    (each) => typeof each === "string",
  );
  if (typeof found === "string" && found !== "") record.answerId = found;
}

const firstData = /^(?:data: ?|\[)(\{.*\})$/m;

/** `text` is the first event of a stream, in the caller's format. */
function noteFirstEvent(record: AttemptRecord, text: string): void {
  const [, data] = firstData.exec(text) ?? [];
  if (data === undefined) return;
  try {
    noteAnswerId(record, object(JSON.parse(data)));
  } catch {
    // An event that is not JSON has no id.
  }
}
