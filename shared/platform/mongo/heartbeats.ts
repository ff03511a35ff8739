import type { mongo as driver } from "mongoose";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";

const tickMs = 1_000;
/** A heartbeat takes four seconds at most: two for the connection and two for the answer. */
const silentTicks = 10;

/** The part of the driver (7.8) that has no public interface. */
interface Topology {
  readonly s: { readonly servers: ReadonlyMap<string, { readonly monitor: Monitor | null }> };
}
interface Monitor {
  close(): void;
  connect(): void;
}

const serversOf = (client: driver.MongoClient) => (client as unknown as { topology?: Topology }).topology?.s.servers;

/**
 * Restarts the monitor of a server whose heartbeats have stopped. The driver (7.8) waits forever if it writes to a socket that
 * is destroyed and not yet closed. If that happens to a heartbeat while the server is not the primary, no operation reaches the
 * server, and the process would never find it again. It counts ticks, so that a pause of this process changes nothing.
 */
export function watchHeartbeats(client: driver.MongoClient, clock: Clock, log: Logger): () => void {
  const silentFor = new Map<string, number>();
  const heard = ({ connectionId }: { readonly connectionId: string }) => void silentFor.set(connectionId, 0);
  client.on("serverHeartbeatSucceeded", heard).on("serverHeartbeatFailed", heard);
  return clock.every(tickMs, () => {
    for (const [address, { monitor }] of serversOf(client) ?? []) {
      const ticks = (silentFor.get(address) ?? 0) + 1;
      silentFor.set(address, ticks % silentTicks);
      if (ticks < silentTicks || !monitor) continue;
      log.error({ server: address }, "heartbeats of MongoDB had stopped and are started again");
      monitor.close();
      monitor.connect();
    }
  });
}
