import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { mockChunk, mockText, mockUsage } from "./mock-openai.ts";

const usageOf = (tokens: number) => ({ prompt_tokens: 9, completion_tokens: tokens, total_tokens: 9 + tokens });

/**
 * Answers JSON calls at once. A stream gets a numbered chunk every 300 ms: at least `leastChunks` of them, and more
 * until `release` is called. Each chunk counts as a token.
 */
export async function startDripProvider({ leastChunks }: { leastChunks: number }) {
  let isReleased = false;
  let streams = 0;
  let aborted = 0;

  async function drip(res: ServerResponse): Promise<void> {
    streams++;
    res.once("close", () => {
      if (!res.writableFinished) aborted++;
    });
    const send = (event: object) => res.write(`data: ${JSON.stringify(event)}\n\n`);
    res.writeHead(200, { "content-type": "text/event-stream" });
    let chunks = 0;
    while (!res.closed && (chunks < leastChunks || !isReleased)) {
      send(mockChunk({ content: `${chunks++} ` }));
      await setTimeout(300);
    }
    send(mockChunk({}, "stop"));
    send(mockChunk(undefined, null, { usage: usageOf(chunks) }));
    res.end("data: [DONE]\n\n");
  }

  async function answer(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { stream } = (await json(req)) as { stream?: boolean };
    if (stream) return drip(res);
    const message = { role: "assistant", content: mockText };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: "stop" }];
    const body = { id: "1", object: "chat.completion", created: 1, model: "mock-1", choices, usage: mockUsage() };
    res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  const server = createServer((req, res) => {
    answer(req, res).catch((error: unknown) => res.destroy(error as Error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    streams: () => streams,
    aborted: () => aborted,
    release(): void {
      isReleased = true;
    },
  };
}
