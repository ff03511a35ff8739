import { chatStream, completeChat, estimateTokens, outputBytes, prepareChat, tokenUsage } from "#formats";
import type { Answer, Attempt, Counted } from "../call.ts";
import { withUploads } from "./chat-uploads.ts";

type Loose = Readonly<Record<string, unknown>>;

/** A chat call on an upstream that speaks the chat format. */
export async function chat(attempt: Attempt): Promise<Answer> {
  return attempt.payload.stream ? streamed(attempt) : whole(attempt);
}

const prepared = ({ model, payload }: Attempt, request: Loose, upstreamModel: string) =>
  prepareChat(request, { model: upstreamModel, capField: model.outputCapField, cap: payload.outputCap });

async function* later<T>(items: Promise<AsyncIterable<T>>): AsyncGenerator<T, void, undefined> {
  yield* await items;
}

/** What the maker says was used; where it says nothing, what four bytes to a token make of it. */
function counted(usage: unknown, { payload }: Attempt, bytes: number): Counted {
  const exact = tokenUsage(usage);
  if (exact) return { usage: exact, estimated: false };
  return { usage: { input: payload.inputEstimate, output: estimateTokens(bytes) }, estimated: true };
}

/** Of a stream that broke off: a usage that came before the end may know of less than was delivered. */
function cutOff(usage: unknown, attempt: Attempt, bytes: number): Counted {
  const count = counted(usage, attempt, bytes);
  const output = estimateTokens(bytes);
  if (count.estimated || (count.usage.output ?? 0) >= output) return count;
  return { usage: { ...count.usage, output }, estimated: true };
}

const oursOf = ({ model, requestId }: Attempt["payload"], clock: Attempt["clock"]) => ({
  model,
  created: Math.floor(clock.now() / 1000),
  id: `chatcmpl-${requestId}`,
});

async function whole(attempt: Attempt): Promise<Answer> {
  const { payload, model, upstreams, signal, progress, log, clock } = attempt;
  const requestFor = await withUploads(attempt);
  const response = await upstreams.once(
    model,
    signal,
    progress,
    async (provider, upstreamModel, signal) =>
      provider.chat({ body: prepared(attempt, await requestFor(provider), upstreamModel), signal, log }),
    log,
  );
  const choices = Array.isArray(response["choices"]) ? (response["choices"] as Loose[]) : [];
  const bytes = choices.reduce((sum, { message }) => sum + outputBytes((message ?? {}) as Loose), 0);
  const count = counted(response["usage"], attempt, bytes);
  const estimate = { input: count.usage.input ?? 0, output: count.usage.output ?? 0 };
  const body = completeChat(response, oursOf(payload, clock), estimate);
  return { ...count, text: JSON.stringify(body) };
}

async function streamed(attempt: Attempt): Promise<Answer> {
  const { payload, model, upstreams, signal, progress, reply, log, clock } = attempt;
  const stream = chatStream(oursOf(payload, clock));
  progress.delivered = () => (reply.delivered() > 0 ? cutOff(stream.usage(), attempt, reply.delivered()) : undefined);
  const requestFor = await withUploads(attempt);
  const items = await upstreams.stream(
    model,
    signal,
    progress,
    (provider, upstreamModel, signal) => {
      const begin = (request: Loose) =>
        provider.streamChat({ body: prepared(attempt, request, upstreamModel), signal, log });
      const request = requestFor(provider);
      return request instanceof Promise ? later(request.then(begin)) : begin(request);
    },
    log,
  );
  for await (const chunks of items) {
    const text = chunks.map((chunk) => stream.write(chunk)).join("");
    if (!text) continue;
    progress.firstTokenAt ??= clock.now();
    await reply.write(text, stream.outputBytes());
  }
  const count = counted(stream.usage(), attempt, stream.outputBytes());
  return { ...count, text: stream.end({ input: count.usage.input ?? 0, output: count.usage.output ?? 0 }) };
}
