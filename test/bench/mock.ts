import { createServer, type ServerResponse } from "node:http";
import { chunksPerStream, jsonContent, streamWords, usage } from "./workload.ts";

/**
 * A maker of models that costs next to nothing: an OpenAI-compatible server on `PORT` whose every byte is made
 * beforehand. `PUT /delay` with a number of milliseconds sets how long each answer waits for its first byte.
 */
const envelope = { id: "chatcmpl-bench", created: 1_750_000_000, model: "gpt-4.1-mini" };
const answer = Buffer.from(
  JSON.stringify({
    ...envelope,
    object: "chat.completion",
    choices: [
      { index: 0, message: { role: "assistant", content: jsonContent }, logprobs: null, finish_reason: "stop" },
    ],
    usage,
  }),
);
const event = (fields: object) =>
  Buffer.from(`data: ${JSON.stringify({ ...envelope, object: "chat.completion.chunk", ...fields })}\n\n`);
const chunks = streamWords.map((content, index) => {
  const delta = index === 0 ? { role: "assistant", content } : { content };
  const finish_reason = index === chunksPerStream - 1 ? "stop" : null;
  return event({ choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
});
const done = Buffer.from("data: [DONE]\n\n");
const usageAndDone = Buffer.concat([event({ choices: [], usage }), done]);

function writeJson(res: ServerResponse): void {
  res.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
  res.end(answer);
}

/** One write for each chunk, with a turn of the event loop between them: a maker's chunks come one by one. */
function writeStream(res: ServerResponse, withUsage: boolean): void {
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  let next = 0;
  const writeNext = () => {
    if (res.destroyed) return;
    if (next === chunks.length) {
      res.end(withUsage ? usageAndDone : done);
      return;
    }
    res.write(chunks[next++]);
    setImmediate(writeNext);
  };
  writeNext();
}

interface Asked {
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
}

function complete(res: ServerResponse, { stream, stream_options }: Asked): void {
  if (stream) writeStream(res, stream_options?.include_usage === true);
  else writeJson(res);
}

let delayMs = 0;
const server = createServer((req, res) => {
  const parts: Buffer[] = [];
  req.on("data", (part: Buffer) => parts.push(part));
  req.on("end", () => {
    if (req.method === "POST") {
      const asked = JSON.parse(Buffer.concat(parts).toString()) as Asked;
      if (delayMs === 0) complete(res, asked);
      else setTimeout(complete, delayMs, res, asked);
    } else {
      if (req.method === "PUT") delayMs = Number(Buffer.concat(parts).toString());
      res.end();
    }
  });
});
// A connection that rests must not be closed under its owner's next request.
server.keepAliveTimeout = 120_000;
server.listen({ host: "127.0.0.1", port: Number(process.env.PORT), backlog: 2_048 });
