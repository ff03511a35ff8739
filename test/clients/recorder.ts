import { createServer, type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from "node:http";
import { homedir, tmpdir } from "node:os";
import type { RecordedRequest, Recording } from "./recording.ts";

/** A proxy to the service on this port that records JSON requests other than downloads. */
export async function startRecorder(service: string, port: number) {
  const requests = new Map<string, RecordedRequest>();
  const server = createServer((incoming, outgoing) => {
    const parts: Buffer[] = [];
    incoming.on("data", (part: Buffer) => parts.push(part));
    incoming.on("end", () => {
      const body = Buffer.concat(parts);
      forward(service, incoming, body, outgoing, (status) => {
        const isJson = body.length === 0 || incoming.headers["content-type"]?.startsWith("application/json");
        if (!isJson || !incoming.url?.startsWith("/v1")) return;
        const noted = note(incoming, body, status);
        const shape = shapeOf(noted);
        if (!requests.has(shape)) requests.set(shape, noted);
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    /** Ends the proxy. Returns a Recording, one request per line. */
    end(about: Omit<Recording, "requests">): string {
      server.close();
      server.closeAllConnections();
      const lines = [...requests.values()].map((each) => `  ${JSON.stringify(each)}`).join(",\n");
      const text = `{${JSON.stringify(about).slice(1, -1)}, "requests": [\n${lines}\n]}\n`;
      const found = [homedir(), tmpdir(), "live_"].find((secret) => text.includes(secret));
      if (found !== undefined) throw new Error(`The recording of ${about.client} has ${found} in it.`);
      return text;
    },
  };
}

function forward(
  service: string,
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
  onStatus: (status: number) => void,
): void {
  const { host: _, ...headers } = incoming.headers;
  const { method } = incoming;
  const onward = request(
    `${service}${incoming.url}`,
    { headers, ...(method !== undefined && { method }) },
    (answer) => {
      onStatus(answer.statusCode ?? 0);
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    },
  );
  outgoing.on("close", () => onward.destroy());
  onward.on("error", () => outgoing.destroy());
  onward.end(body);
}

/** The headers that the response depends on. */
const relevant = ["accept", "content-type", "anthropic-version", "anthropic-beta"];

function note({ method = "", url = "", headers }: IncomingMessage, body: Buffer, status: number): RecordedRequest {
  const path = url.replace(/([?&])key=[^&]*&?/, "$1").replace(/[?&]$/, "");
  const noted = Object.fromEntries(
    relevant.flatMap((name) => (headers[name] === undefined ? [] : [[name, String(headers[name])]])),
  );
  return {
    method,
    path,
    key: keyPlace(url, headers),
    headers: noted,
    ...(body.length > 0 && { body: stable(JSON.parse(body.toString("utf8"))) }),
    // A repeated request cannot refer to stored items of the recorded run.
    status: /"(?:item_reference|previous_response_id)":?/.test(body.toString("utf8")) ? 400 : status,
  };
}

function keyPlace(url: string, headers: IncomingHttpHeaders): RecordedRequest["key"] {
  if (headers["x-api-key"] !== undefined) return "x-api-key";
  if (headers["x-goog-api-key"] !== undefined) return "x-goog-api-key";
  if (headers.authorization !== undefined) return "authorization";
  return /[?&]key=/.test(url) ? "query" : "none";
}

/** Replaces values that differ in every run: numbers ids, and drops pauses. */
function stable(body: unknown): unknown {
  const ids = new Map<string, string>();
  const text = JSON.stringify(body)
    .replace(/\b(slow:)\d+/g, "$11")
    .replace(
      /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g,
      "00000000-0000-4000-8000-000000000000",
    )
    .replace(/\b(call|toolu|msg|fc|rs|resp|chatcmpl|lc_run|trace|group)_[\w-]{6,}/g, (id, kind: string) => {
      if (!ids.has(id)) ids.set(id, `${kind}_recorded_${ids.size + 1}`);
      return ids.get(id) ?? id;
    });
  return JSON.parse(text);
}

/** Requests of one shape differ only in their texts and numbers. */
function shapeOf({ body, ...rest }: RecordedRequest): string {
  return JSON.stringify([rest, shape(body, "")]);
}

const telling = new Set(["type", "role", "model", "tool_choice", "mode", "stream", "encoding_format", "store"]);

function shape(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return [...new Set(value.map((each) => JSON.stringify(shape(each, name))))];
  if (typeof value === "object" && value !== null)
    return Object.entries(value).map(([key, each]) => [key, shape(each, key)]);
  return telling.has(name) ? value : typeof value;
}
