import { createServer, type ServerResponse } from "node:http";
import { formatAt, madeStreams } from "./format-streams.ts";
import { jsonContent, usage } from "./workload.ts";

/**
 * A mock provider that costs next to nothing: a server on `PORT` whose responses are prepared in advance. It answers as OpenAI
 * does, and streams in every format. `PUT /delay` with a number of milliseconds sets how long each answer waits for its first byte.
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
const streams = Object.fromEntries(
  Object.entries(madeStreams).map(([format, pieces]) => [format, pieces.map((piece) => Buffer.from(piece))]),
);

function writeJson(res: ServerResponse): void {
  res.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
  res.end(answer);
}

/** One write for each chunk, with a turn of the event loop between them: a provider's chunks come one by one. */
function writeStream(res: ServerResponse, path: string): void {
  const pieces = streams[formatAt(path)] ?? [];
  res.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  let next = 0;
  const writeNext = () => {
    if (res.destroyed) return;
    if (next === pieces.length) return void res.end();
    res.write(pieces[next++]);
    setImmediate(writeNext);
  };
  writeNext();
}

function complete(res: ServerResponse, path: string, { stream }: { readonly stream?: boolean }): void {
  if (stream || path.includes(":stream")) writeStream(res, path);
  else writeJson(res);
}

let delayMs = 0;
const server = createServer((req, res) => {
  const parts: Buffer[] = [];
  req.on("data", (part: Buffer) => parts.push(part));
  req.on("end", () => {
    if (req.method === "POST") {
      const asked = JSON.parse(Buffer.concat(parts).toString()) as { readonly stream?: boolean };
      const path = (req.url ?? "").replace(/\?.*$/, "");
      if (delayMs === 0) complete(res, path, asked);
      else setTimeout(complete, delayMs, res, path, asked);
    } else {
      if (req.method === "PUT") delayMs = Number(Buffer.concat(parts).toString());
      res.end();
    }
  });
});
// An idle connection must not be closed just as its owner sends the next request.
server.keepAliveTimeout = 120_000;
server.listen({ host: "127.0.0.1", port: Number(process.env.PORT), backlog: 2_048 });
