import { estimateTokens } from "#formats";
import { completionTokens, type StreamWriter, tokenUsage } from "../conversion/index.ts";
import type { Answer, Attempt } from "../run-call.ts";
import type { AbortCause } from "../running.ts";
import type { AskedUpstream } from "../upstreams/index.ts";
import { type ConvertedCall, chatOf, convertCall, countedOf, tokensOf } from "./convert.ts";
import { countInput, refuseDenseFiles } from "./count.ts";
import { createCut } from "./cut.ts";

/** A call that is answered in text, in whatever format the caller speaks. */
export async function chat(attempt: Attempt): Promise<Answer> {
  await refuseDenseFiles(attempt);
  return attempt.payload.stream ? streamed(attempt) : whole(attempt);
}

async function* later<T>(items: Promise<AsyncIterable<T>>): AsyncGenerator<T, void, undefined> {
  yield* await items;
}

/** Ends of a stream that are charged though nothing was delivered, once a provider was asked, or has answered. */
const isChargedBefore = (cause: AbortCause | undefined, attempts: number, hasAnswered: boolean): boolean =>
  (cause === "disconnected" && attempts > 0) || (cause === "deadline" && hasAnswered);

/**
 * What a stream that ended early is charged for: what the provider says was used, else the input and the output
 * delivered. Undefined, nothing: it failed, or its API instance died, before anything was delivered.
 */
async function countCut(attempt: Attempt, stream: StreamWriter | undefined, cause: AbortCause | undefined) {
  const { progress, reply } = attempt;
  const delivered = reply.delivered();
  if (delivered === 0 && !isChargedBefore(cause, progress.attempts, stream !== undefined)) return undefined;
  const output = estimateTokens(delivered);
  const last = tokenUsage(stream?.usage());
  if (last && completionTokens(last) >= output) return { usage: last, estimated: false };
  // What was told of the prompt alone counts no output yet.
  const told = last ?? tokenUsage(stream?.usage(true));
  const usage = told ?? { input: await inputOf(attempt), output: 0 };
  return { usage: { ...usage, output: Math.max(usage.output, output) }, estimated: true };
}

/** Counted when the call is over: no signal of it may end that, and it is no attempt. */
async function inputOf(attempt: Attempt): Promise<number> {
  const { payload, log } = attempt;
  try {
    const { signal } = new AbortController();
    return (await countInput({ ...attempt, signal, progress: { account: payload.account, attempts: 0 } })).tokens;
  } catch (error) {
    log.warn({ err: error }, "the input of a cut stream is counted by its bytes");
    return payload.inputEstimate;
  }
}

/** Whether the provider bills reasoning that the stream does not show, so that only its own count tells the cost. */
function reasonsUnseen(attempt: Attempt): boolean {
  const { model } = attempt;
  if (!model.hiddenReasoning) return false;
  const effort = chatOf(attempt)?.["reasoning_effort"];
  // Claude reasons only when it is asked to.
  return effort === undefined ? model.ownedBy !== "anthropic" : effort !== "none";
}

const ignoredHeaders = ({ ignored }: ConvertedCall) =>
  ignored.length > 0 ? { headers: { "x-ignored-params": ignored.join(", ") } } : {};

async function whole(attempt: Attempt): Promise<Answer> {
  const { model, upstreams, signal, disconnected, progress, log } = attempt;
  const call = await convertCall(attempt);
  const { exchange, given } = await upstreams.once(
    model,
    signal,
    progress,
    async (asked, signal) => {
      // After a failure no other provider is asked for a caller who is gone.
      disconnected.throwIfAborted();
      const exchange = await call.with(asked);
      return { exchange, given: await asked.provider.answer({ ...exchange.call, signal, log }) };
    },
    log,
  );
  const { body, counted } = exchange.answer(given);
  return { ...counted, text: JSON.stringify(body), ...ignoredHeaders(exchange) };
}

async function streamed(attempt: Attempt): Promise<Answer> {
  const { model, upstreams, progress, reply, log, clock } = attempt;
  const call = await convertCall(attempt);
  progress.fail = call.fail;
  let exchange: ConvertedCall | undefined;
  let stream: StreamWriter | undefined;
  const cut = createCut(
    attempt,
    () => progress.attempts > 0 && stream?.usage() === undefined && reasonsUnseen(attempt),
  );
  progress.countCut = (cause) => countCut(attempt, stream, cause);
  const begin = (begun: ConvertedCall, asked: AskedUpstream, signal: AbortSignal) => {
    exchange = begun;
    return asked.provider.stream({ ...begun.call, signal, log });
  };
  try {
    const items = await upstreams.stream(
      model,
      cut.signal,
      progress,
      (asked, signal) => {
        // Nobody else is asked for a stream that is read on for its usage.
        if (cut.reason() !== undefined) throw cut.reason();
        const begun = call.with(asked);
        return begun instanceof Promise
          ? later(begun.then((each) => begin(each, asked, signal)))
          : begin(begun, asked, signal);
      },
      log,
    );
    if (!exchange) throw new TypeError("a stream of no upstream");
    stream = exchange.stream();
    const { headers } = ignoredHeaders(exchange);
    if (headers) reply.announce(headers);
    if (stream.fail) progress.fail = stream.fail;
    for await (const events of items) {
      let text = "";
      for (const event of events) text += stream.write(event);
      if (cut.reason() !== undefined) {
        if (stream.usage() !== undefined) break;
        continue;
      }
      if (!text) continue;
      progress.firstTokenAt ??= clock.now();
      await reply.write(text, stream.outputBytes());
    }
    if (cut.reason() !== undefined) throw cut.reason();
    const counted = countedOf(attempt, stream.usage(), () => stream?.outputBytes() ?? 0);
    return { ...counted, text: stream.end(tokensOf(counted)) };
  } catch (error) {
    throw cut.reason() ?? error;
  } finally {
    cut.close();
  }
}
