import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { type Clock, systemClock } from "#platform/clock";
import { bodyTimeoutMs } from "../../api/http/body.ts";
import type { Client } from "./service.ts";

export const headOf = (path: string, headers: Readonly<Record<string, string | number>>) =>
  [
    `POST ${path} HTTP/1.1`,
    "host: x",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "\r\n",
  ].join("\r\n");
export const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

/** Sends all but the end of a body, or as much as the service reads. */
export async function stall(
  { baseUrl }: Pick<Client, "baseUrl">,
  head: string,
  bytes: number,
  chunked: boolean,
): Promise<Socket> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  let answered = false;
  socket.on("error", () => {}).once("data", () => (answered = true));
  socket.write(head);
  const framed = chunked
    ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")])
    : piece;
  for (let sent = 0; sent < bytes && !answered && !socket.destroyed; sent += piece.length) {
    // Detect a refusal between the pieces.
    if (socket.write(framed)) await nextTurn();
    else await new Promise<void>((resolve) => socket.once("drain", resolve).once("close", resolve));
    socket.removeAllListeners("drain").removeAllListeners("close");
  }
  return socket;
}
const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
export const piece = Buffer.alloc(64 * 1024, " ");

/** Gives a body as long as it takes, because a busy machine may need more than a minute for all of them. */
export const patient: Clock = {
  ...systemClock,
  after: (ms, fire) => (ms === bodyTimeoutMs ? () => {} : systemClock.after(ms, fire)),
};
