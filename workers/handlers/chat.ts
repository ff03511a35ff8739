import { estimateTokens, type StreamWriter } from "#formats";
import type { Answer, Attempt, Counted } from "../call.ts";
import { countedOf, type Exchange, exchanges, tokensOf } from "./exchange.ts";

/** A call that is answered in text, in whatever format the caller speaks. */
export async function chat(attempt: Attempt): Promise<Answer> {
  return attempt.payload.stream ? streamed(attempt) : whole(attempt);
}

async function* later<T>(items: Promise<AsyncIterable<T>>): AsyncGenerator<T, void, undefined> {
  yield* await items;
}

/** Of a stream that broke off: a usage that came before the end may know of less than was delivered. */
function cutOff(stream: StreamWriter, attempt: Attempt, bytes: number): Counted {
  const usage = stream.usage();
  const count = countedOf(attempt, usage ?? stream.usage(true), () => bytes);
  const output = estimateTokens(bytes);
  // What was told of the prompt alone counts no output yet.
  if (usage === undefined) return { usage: { ...count.usage, output }, estimated: true };
  if (count.estimated || (count.usage.output ?? 0) >= output) return count;
  return { usage: { ...count.usage, output }, estimated: true };
}

/** To be named to the caller, with the first frame. */
function announce({ reply }: Attempt, { ignored }: Exchange): void {
  if (ignored.length > 0) reply.announce({ "x-ignored-params": ignored.join(", ") });
}

async function whole(attempt: Attempt): Promise<Answer> {
  const { model, upstreams, signal, progress, log } = attempt;
  const call = await exchanges(attempt);
  const { exchange, given } = await upstreams.once(
    model,
    signal,
    progress,
    async (asked, signal) => {
      const exchange = await call.with(asked);
      return { exchange, given: await asked.provider.answer({ ...exchange.call, signal, log }) };
    },
    log,
  );
  const { body, counted } = exchange.answer(given);
  announce(attempt, exchange);
  return { ...counted, text: JSON.stringify(body) };
}

async function streamed(attempt: Attempt): Promise<Answer> {
  const { model, upstreams, signal, progress, reply, log, clock } = attempt;
  const call = await exchanges(attempt);
  progress.fail = call.fail;
  let exchange: Exchange | undefined;
  const items = await upstreams.stream(
    model,
    signal,
    progress,
    (asked, signal) => {
      const begin = (begun: Exchange) => {
        exchange = begun;
        return asked.provider.stream({ ...begun.call, signal, log });
      };
      const begun = call.with(asked);
      return begun instanceof Promise ? later(begun.then(begin)) : begin(begun);
    },
    log,
  );
  if (!exchange) throw new TypeError("a stream of no upstream");
  const stream = exchange.stream();
  announce(attempt, exchange);
  progress.delivered = () => (reply.delivered() > 0 ? cutOff(stream, attempt, reply.delivered()) : undefined);
  if (stream.fail) progress.fail = stream.fail;
  for await (const events of items) {
    let text = "";
    for (const event of events) text += stream.write(event);
    if (!text) continue;
    progress.firstTokenAt ??= clock.now();
    await reply.write(text, stream.outputBytes());
  }
  const counted = countedOf(attempt, stream.usage(), () => stream.outputBytes());
  return { ...counted, text: stream.end(tokensOf(counted)) };
}
