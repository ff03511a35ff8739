import { connect, type Socket } from "node:net";
import { constants, setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { asking, burstPrompt, streamFormats } from "./format-streams.ts";
import { prompt } from "./workload.ts";

/**
 * Callers who try to exhaust the service's memory, in a separate thread so that they do not delay the measured calls. They
 * begin within three seconds, and one who is answered or disconnected begins again after five to fifteen; those who pipeline
 * begin again after about one, since their requests cost them nothing. The thread has the lowest priority: on other machines,
 * as in reality, it would take no processor time from the service at all. Posts the counts of each status once a second.
 */
export type Attack =
  | "streams"
  | "drips"
  | "keyless"
  | "unfunded"
  | "pipelined"
  | "embeddings"
  | "unreadEmbeddings"
  | "replays";

export interface Attackers {
  readonly attack: Attack;
  readonly port: number;
  readonly model: string;
  /** One for each caller. Empty for callers without a key. */
  readonly keys: readonly string[];
}

const { attack, port, model, keys } = workerData as Attackers;
const embeddingsModel = "openai/text-embedding-3-large";
/** Those of the other attacks read the status, and then disconnect. */
const readsAll = attack === "embeddings";
const readsNothing = ["streams", "pipelined", "unreadEmbeddings", "replays"].includes(attack);
const statuses: Record<string, number> = {};
const beginWithinMs = 3_000;
const againMs = attack === "pipelined" ? 1_000 : 10_000;
/** The delay before the last byte of a keyless body. */
const lastByteMs = 5_000;
const reportMs = 1_000;
const dripMs = 50;
const mebi = 1024 * 1024;
const closing = "}".charCodeAt(0);
const space = Buffer.alloc(64 * 1024, " ");

/** Each is 64 KB of requests without a key. */
const pipelined = ["/openapi.json", "/docs/swagger-ui-bundle.js", "/v1/models", "/none"].map((path) => {
  const request = `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
  return request.repeat(space.length / request.length);
});

interface Body {
  readonly path: string;
  readonly length: number;
  /** Sends the request, as far as the socket accepts it. */
  readonly send: (socket: Socket) => Promise<void> | void;
}

/** Writes with backpressure. Returns false if the socket is closed. */
async function write(socket: Socket, piece: Buffer | string): Promise<boolean> {
  if (!socket.destroyed && !socket.write(piece))
    await new Promise<void>((resolve) => {
      const go = () => {
        socket.off("drain", go).off("close", go);
        resolve();
      };
      socket.on("drain", go).on("close", go);
    });
  return !socket.destroyed;
}

async function writeAll(socket: Socket, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; at += space.length)
    if (!(await write(socket, bytes.subarray(at, at + space.length)))) return;
}

const chatPath = "/v1/chat/completions";
const largest = 25 * mebi;
const messages = (content: unknown) => ({ model, messages: [{ role: "user", content }] });
const padded = (value: object, length: number) => Buffer.from(JSON.stringify(value).padEnd(length));
const dripping = new Set<Socket>();
const embeddingsText = JSON.stringify({ model: embeddingsModel, input: Array<string>(256).fill("Hello") });
const embeddings: Body = {
  path: "/v1/embeddings",
  length: embeddingsText.length,
  send: (socket) => void socket.write(embeddingsText),
};

const bodies: Readonly<Record<Exclude<Attack, "pipelined">, (caller: number) => Body>> = {
  streams(caller) {
    const { path, body } = asking[streamFormats[caller % streamFormats.length] ?? "chat"];
    const text = JSON.stringify(body(model)).replace(prompt, burstPrompt);
    return { path: path(model), length: text.length, send: (socket) => void socket.write(text) };
  },
  drips: () => ({
    path: chatPath,
    length: largest,
    async send(socket) {
      await writeAll(socket, Buffer.alloc(mebi, " "));
      dripping.add(socket);
      socket.on("close", () => dripping.delete(socket));
    },
  }),
  keyless() {
    const bytes = padded({ model: "local/image", prompt: "A fox" }, 120_000);
    return {
      path: "/v1/images/generations",
      length: bytes.length,
      async send(socket) {
        await writeAll(socket, bytes.subarray(0, -1));
        setTimeout(() => socket.write(" "), lastByteMs);
      },
    };
  },
  embeddings: () => embeddings,
  unreadEmbeddings: () => embeddings,
  replays: () => embeddings,
  unfunded(caller) {
    const bytes = caller % 2 === 0 ? text : values;
    return { path: chatPath, length: bytes.length, send: (socket) => writeAll(socket, bytes) };
  },
};
const isUnfunded = attack === "unfunded";
/** One long text, and as many small values as fit. */
const text = isUnfunded ? padded(messages("x".repeat(largest - 1_000)), largest) : space;
const values = isUnfunded
  ? padded({ ...messages("Hi"), metadata: Array.from({ length: 3_000_000 }, () => ({})) }, largest)
  : space;

/** Sends what the caller asks for. */
function ask(socket: Socket, caller: number): void {
  if (attack === "pipelined") return void socket.write(pipelined[caller % pipelined.length] ?? "");
  const { path, length, send } = bodies[attack](caller);
  const key = keys[caller] ?? "";
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n` +
      `${key && `authorization: Bearer ${key}\r\n`}${attack === "replays" ? "idempotency-key: replays\r\n" : ""}\r\n`,
  );
  void send(socket);
}

function begin(caller: number): void {
  const socket = connect(port, "127.0.0.1");
  let isOver = false;
  const again = () => {
    if (isOver) return;
    isOver = true;
    socket.destroy();
    setTimeout(begin, againMs * (0.5 + Math.random()), caller);
  };
  socket.on("error", () => {}).on("close", again);
  if (readsNothing) socket.pause();
  else
    socket.once("data", (answer: Buffer) => {
      const status = answer.toString("latin1", 9, 12);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (!readsAll || status !== "200") return again();
      socket.on("data", (bytes: Buffer) => {
        if (bytes.at(-1) === closing) again();
      });
    });
  ask(socket, caller);
  // One that does not read does not see its end.
  if (attack === "pipelined") setTimeout(again, againMs / 2);
}

setPriority(0, constants.priority.PRIORITY_LOW);
for (const caller of keys.keys()) setTimeout(begin, beginWithinMs * Math.random(), caller);
setInterval(() => {
  for (const socket of dripping) socket.write(" ");
}, dripMs);
setInterval(() => parentPort?.postMessage(statuses), reportMs);
