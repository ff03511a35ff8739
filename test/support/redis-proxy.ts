import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { onTestFinished } from "vitest";
import type { Stores } from "./servers.ts";

/** Redis behind a connection that can break in the middle of what it answers. */
export async function breakable(stores: Stores) {
  const url = new URL(stores.REDIS_URL);
  const { hostname, port } = url;
  let breaks = 0;
  let breaking = false;
  const ends = new Set<() => void>();
  const server = createServer((client) => {
    const redis = connect(Number(port), hostname);
    const end = () => {
      client.destroy();
      redis.destroy();
      ends.delete(end);
    };
    ends.add(end);
    for (const socket of [client, redis]) socket.on("error", end).on("close", end);
    client.pipe(redis);
    redis.on("data", (bytes: Buffer) => {
      const firstAnswer = bytes.indexOf("\r\n", bytes.indexOf("\r\n") + 2) + 2;
      if (!breaking) return void client.write(bytes);
      breaking = false;
      breaks++;
      client.end(bytes.subarray(0, firstAnswer < bytes.length ? firstAnswer : 0));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  url.hostname = "127.0.0.1";
  url.port = String((server.address() as AddressInfo).port);
  return {
    stores: { ...stores, REDIS_URL: url.href },
    /** The next answer is lost, or all that come with it but the first, and the connection ends. */
    breakNext: () => {
      breaking = true;
    },
    breaks: () => breaks,
    /** Ends all connections at once, in the middle of whatever they carry. */
    cut: () => {
      for (const end of ends) end();
    },
  };
}
