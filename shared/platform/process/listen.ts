import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { ConfigError } from "../config-error.ts";

export class PortInUse extends ConfigError {}

/**
 * Connections that the kernel accepts ahead of the process, at most `net.core.somaxconn`. When they are more than Node's default
 * of 511, a client's first packet is dropped, and it tries again after a second.
 */
const backlog = 4_096;

/** Binds the server to the port of this variable, and resolves to the port. Throws ConfigError if it cannot. */
export async function listen(
  server: Server,
  { variable, port, host }: { variable: string; port: number; host: string },
): Promise<number> {
  server.listen({ port, host, backlog });
  try {
    await once(server, "listening");
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE")
      throw new PortInUse(`${variable}: port ${port} of ${host} is in use. Set another one, or 0 for any free one.`);
    throw new ConfigError(`${variable}: ${message}`);
  }
  return (server.address() as AddressInfo).port;
}
