import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

/**
 * A proxy to the server at an address, until the test ends. `join` passes on the data of both ends of a connection;
 * when one end closes, so does the other. `url` is the address with the proxy in place of the server; `cut` closes all
 * connections.
 */
export async function openWire(address: string, join: (client: Socket, server: Socket) => void) {
  const { hostname, port } = new URL(address);
  const ends = new Set<() => void>();
  const listener = createServer((client) => {
    const server = connect(Number(port), hostname);
    const end = () => {
      client.destroy();
      server.destroy();
      ends.delete(end);
    };
    ends.add(end);
    for (const socket of [client, server]) socket.on("error", end).on("close", end);
    join(client, server);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const cut = () => {
    for (const end of ends) end();
  };
  onTestFinished(() => {
    cut();
    listener.close();
  });
  const url = new URL(address);
  url.hostname = "127.0.0.1";
  url.port = String((listener.address() as AddressInfo).port);
  return { url, cut };
}

/** A proxy to a server that may stop, or go silent. */
export async function openFaultyWire(address: string) {
  let fault: "unavailable" | "silent" | undefined;
  const { url, cut } = await openWire(address, (client, server) => {
    if (fault === "unavailable") return void client.destroy();
    client.pipe(server);
    // A connection that lost an answer stays silent: the next answer would be taken for that one.
    let isSilent = false;
    server.on("data", (bytes: Buffer) => {
      isSilent ||= fault === "silent";
      if (isSilent || client.write(bytes)) return;
      server.pause();
      client.once("drain", () => server.resume());
    });
  });
  return {
    url,
    server: {
      stop() {
        fault = "unavailable";
        cut();
      },
      /** It receives what is sent, but its answers are lost. */
      silence() {
        fault = "silent";
      },
      restore() {
        fault = undefined;
      },
    },
  };
}
