import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type Client, type Customer, eventually, shortApiTimeout } from "./service.ts";

export const path = "/v1/uploads";
export const bytes = 4 * 1024 * 1024;
/** Looks like a video to a reader of its first bytes. */
export const video = Buffer.concat([
  Buffer.from("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42", "latin1"),
  Buffer.alloc(bytes - 24, 7),
]);
/** At 1024 USD per GB. */
export const costUsd = "4.00";
export const uploadEnv = { UPLOAD_USD_PER_GB_DAY: "1024", ...shortApiTimeout };

interface UploadBody {
  readonly id: string;
  readonly status: string;
}

export const upload = ({ baseUrl }: Client, { key }: Customer, headers: Record<string, string> = {}) =>
  fetch(`${baseUrl}${path}`, {
    method: "POST",
    body: video,
    headers: { authorization: `Bearer ${key}`, "content-type": "video/mp4", ...headers },
  });

/** Sends the head and half of the bytes. */
export async function sendHalf(
  { baseUrl }: Client,
  { key }: Customer,
  headers: readonly string[] = [],
): Promise<Socket> {
  const { hostname, port } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  await once(socket, "connect");
  const head = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${key}`,
    "content-type: video/mp4",
    `content-length: ${bytes}`,
    ...headers,
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`);
  await new Promise<void>((resolve) => socket.write(video.subarray(0, bytes / 2), () => resolve()));
  return socket;
}

/** Waits until an upload has begun. */
export const held = (client: Client) => eventually(async () => (await client.check()).open_holds === 1);

/** The account's own list of its uploads. */
export async function listed({ baseUrl }: Client, { key }: Customer): Promise<readonly UploadBody[]> {
  const response = await fetch(`${baseUrl}${path}`, { headers: { authorization: `Bearer ${key}` } });
  return ((await response.json()) as { data: UploadBody[] }).data;
}
