import { setTimeout } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { mockChunk, startMockOpenai } from "./mock-openai.ts";

const usageOf = (tokens: number) => ({ prompt_tokens: 9, completion_tokens: tokens, total_tokens: 9 + tokens });

/**
 * Answers JSON calls at once. A stream gets a numbered chunk every 300 ms: at least `leastChunks` of them, and more
 * until `release` is called. Each chunk counts as a token.
 */
export async function startDripProvider({ leastChunks }: { leastChunks: number }) {
  let isReleased = false;

  async function* drip(): AsyncGenerator<object> {
    let chunks = 0;
    for (; chunks < leastChunks || !isReleased; chunks++) {
      yield mockChunk({ content: `${chunks} ` });
      await setTimeout(300);
    }
    yield mockChunk({}, "stop");
    yield mockChunk(undefined, null, { usage: usageOf(chunks) });
  }

  const mock = await startMockOpenai();
  onTestFinished(() => mock.close());
  mock.always(({ body }) => (body["stream"] === true ? { events: drip() } : {}));
  const streams = () => mock.requests.filter(({ body }) => body["stream"] === true);
  return {
    url: mock.url,
    streams: () => streams().length,
    aborted: () => streams().filter(({ aborted }) => aborted).length,
    release(): void {
      isReleased = true;
    },
  };
}
