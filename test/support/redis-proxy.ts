import type { Stores } from "./servers.ts";
import { openWire } from "./wire.ts";

/** Redis behind a connection that can break in the middle of a response. */
export async function breakable(stores: Stores) {
  let breaks = 0;
  let breaking = false;
  const { url, cut } = await openWire(stores.REDIS_URL, (client, redis) => {
    client.pipe(redis);
    redis.on("data", (bytes: Buffer) => {
      const firstAnswer = bytes.indexOf("\r\n", bytes.indexOf("\r\n") + 2) + 2;
      if (!breaking) return void client.write(bytes);
      breaking = false;
      breaks++;
      client.end(bytes.subarray(0, firstAnswer < bytes.length ? firstAnswer : 0));
    });
  });
  return {
    stores: { ...stores, REDIS_URL: url.href },
    /** Loses the next response, or all but the first of a batch, and closes the connection. */
    breakNext: () => {
      breaking = true;
    },
    breaks: () => breaks,
    /** Closes all connections at once, regardless of their data. */
    cut,
  };
}
