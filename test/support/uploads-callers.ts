import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { onTestFinished } from "vitest";
import { type Client, eventually } from "./service.ts";
import type { Uploader, UploadService } from "./uploads-setup.ts";

type Body = NonNullable<RequestInit["body"]>;

/** Sends through `node:http`, at the service's pace. Without a length the body is sent in chunks. */
export async function send(
  { service }: UploadService,
  { headers }: Uploader,
  body: Iterable<Buffer>,
  more: Readonly<Record<string, string | number>> = {},
  path = "/v1/uploads",
): Promise<Response> {
  const outgoing = request(`${service.baseUrl}${path}`, { method: "POST", headers: { ...headers, ...more } });
  const answered = once(outgoing, "response");
  // After an early refusal the connection may close during the write: the response counts.
  pipeline(Readable.from(body, { objectMode: false }), outgoing).catch(() => {});
  const [incoming] = (await answered) as [IncomingMessage];
  const parts: Buffer[] = [];
  for await (const part of incoming) parts.push(part as Buffer);
  const answerHeaders = Object.entries(incoming.headers).map(
    ([name, value]) => [name, String(value)] as [string, string],
  );
  return new Response(Buffer.concat(parts), { status: incoming.statusCode ?? 0, headers: answerHeaders });
}

/** A connection with raw writes. */
export interface Wire {
  readonly socket: Socket;
  write(bytes: string | Buffer): Promise<void>;
  /** All received text. */
  text(): string;
  /** Resolves with all received text, once it fits. */
  received(fits: (text: string) => boolean): Promise<string>;
  readonly closed: Promise<unknown>;
}

export async function wireTo({ baseUrl }: Client): Promise<Wire> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  onTestFinished(() => void socket.destroy());
  let text = "";
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
  });
  socket.on("error", () => {});
  const closed = new Promise((resolve) => socket.once("close", resolve));
  return {
    socket,
    closed,
    text: () => text,
    write: (bytes) => new Promise((resolve) => socket.write(bytes, () => resolve())),
    received: (fits) => eventually(() => (fits(text) ? text : undefined)),
  };
}

/** The head of a POST. */
export const headOf = (
  uploader: Uploader,
  headers: Readonly<Record<string, string | number>>,
  path = "/v1/uploads",
): string =>
  [
    `POST ${path} HTTP/1.1`,
    "host: localhost",
    `authorization: ${uploader.headers.authorization}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "\r\n",
  ].join("\r\n");

/** The output of curl: the response's body, then status and bytes sent. */
export async function curl(uploader: Pick<Uploader, "headers">, ...args: string[]) {
  const written = "\n%{http_code} %{size_upload}";
  const child: ChildProcess = spawn(
    "curl",
    ["-sS", "-w", written, "-H", `authorization: ${uploader.headers.authorization}`, ...args],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let text = "";
  child.stdout?.on("data", (bytes: Buffer) => {
    text += bytes.toString();
  });
  const [code] = (await once(child, "close")) as [number];
  const at = text.lastIndexOf("\n");
  const [status, sent] = text.slice(at + 1).split(" ");
  return { code, status: Number(status), sent: Number(sent), body: JSON.parse(text.slice(0, at)) as unknown };
}

/** Sends one part with the method and headers of its link. */
export const putPart = (url: string, body: Body): Promise<Response> => fetch(url, { method: "PUT", body });
