import type { Socket } from "node:net";
import { openWire } from "./wire.ts";

/**
 * Wires from a process to its stores that kill it at the `at`-th message that it sends after `arm`: before the server has it, or, where
 * `executed`, once the server has answered.
 */
export function createDeath({ at, executed }: { at: number; executed: boolean }) {
  let kill: (() => void) | undefined;
  let sent = 0;
  let isDead = false;
  const die = () => {
    isDead = true;
    kill?.();
  };
  const join = (client: Socket, server: Socket) => {
    client.on("data", (data: Buffer) => {
      const isLast = kill !== undefined && ++sent === at;
      if (isLast && !executed) die();
      if (isDead) return;
      server.write(data);
      if (isLast) server.once("data", die);
    });
    server.on("data", (data: Buffer) => isDead || client.write(data));
  };
  return {
    arm(onDeath: () => void): void {
      kill = onDeath;
    },
    /** The address of the store through a wire. */
    wire: async (address: string): Promise<string> => (await openWire(address, join)).url.href,
  };
}
