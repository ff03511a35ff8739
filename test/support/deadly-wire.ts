import type { Socket } from "node:net";
import type { Stores } from "./servers.ts";
import { openWire } from "./wire.ts";

/**
 * Proxies from a process to its stores that kill it at the `at`-th message of some kind that it sends after `arm`:
 * before the server receives it, or, if `executed`, once the server has responded. What is sent from then on is lost, unless
 * the network `delivers` what the process had written.
 */
export function createDeath({ at, executed, delivers = false }: { at: number; executed: boolean; delivers?: boolean }) {
  let kill: (() => void) | undefined;
  let counts: (message: Buffer) => boolean = () => false;
  let sent = 0;
  let isDead = false;
  const die = () => {
    isDead = true;
    kill?.();
  };
  const join = (client: Socket, server: Socket) => {
    client.on("data", (data: Buffer) => {
      const isLast = counts(data) && ++sent === at;
      if (isLast && !executed) die();
      if (isDead && !delivers) return;
      server.write(data);
      if (isLast) server.once("data", die);
    });
    server.on("data", (data: Buffer) => isDead || client.write(data));
  };
  return {
    arm(onDeath: () => void, isCounted: (message: Buffer) => boolean): void {
      kill = onDeath;
      counts = isCounted;
    },
    /** The address of the store through a proxy. A MongoDB driver must not discover the server behind it. */
    async wire(address: string): Promise<string> {
      const { url } = await openWire(address, join);
      if (url.protocol === "mongodb:") url.search = "?directConnection=true";
      return url.href;
    },
  };
}

/** A process with these stores dies at the first message to MongoDB that `arm` names: before it, or once it is executed. */
export async function deadlyMongo(stores: Stores, executed: boolean) {
  const death = createDeath({ at: 1, executed });
  return { death, stores: { ...stores, MONGODB_URI: await death.wire(stores.MONGODB_URI) } };
}
