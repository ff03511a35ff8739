import { execFile } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { promisify } from "node:util";

const run = promisify(execFile);
const ip = (...args: string[]) => run("ip", args);

/** A process's place in the network. */
export interface Place {
  /** The first words of its command. */
  readonly prefix: readonly string[];
  /** The address at which others reach it. */
  readonly host: string;
  /** Cuts the place off from everything, or reconnects it; undefined if that is not possible. */
  readonly setLink: ((up: boolean) => Promise<void>) | undefined;
  leave(): Promise<void>;
}

export interface Network {
  readonly means: "network namespaces" | "TCP proxies";
  /** The address of stores and providers, reachable from every place. */
  readonly host: string;
  join(): Promise<Place>;
  close(): Promise<void>;
}

/** Everything on 127.0.0.1. */
const loopback: Network = {
  means: "TCP proxies",
  host: "127.0.0.1",
  join: () => Promise.resolve({ prefix: [], host: "127.0.0.1", setLink: undefined, leave: () => Promise.resolve() }),
  close: () => Promise.resolve(),
};

/** A namespace for each process, with a cable to an isolated bridge of this machine. */
async function namespaces(): Promise<Network> {
  // Interface names have at most 15 characters.
  const id = process.pid.toString(36);
  const bridge = `chaos-${id}`;
  // The subnet is in the block for benchmarks (RFC 2544), so that it hides no real network.
  const subnet = `198.18.${process.pid % 256}`;
  const open = new Set<string>();
  let joined = 0;
  const close = async () => {
    for (const name of open) await ip("netns", "del", name).catch(() => {});
    open.clear();
    await ip("link", "del", bridge).catch(() => {});
  };
  try {
    await ip("link", "add", bridge, "type", "bridge");
    await ip("addr", "add", `${subnet}.1/24`, "dev", bridge);
    await ip("link", "set", bridge, "up");
    const network: Network = {
      means: "network namespaces",
      host: `${subnet}.1`,
      async join() {
        joined++;
        const name = `${bridge}-${joined}`;
        const [outside, inside] = [`c${id}o${joined}`, `c${id}i${joined}`];
        const host = `${subnet}.${1 + joined}`;
        await ip("netns", "add", name);
        open.add(name);
        await ip("link", "add", outside, "type", "veth", "peer", "name", inside);
        await ip("link", "set", inside, "netns", name);
        await ip("link", "set", outside, "master", bridge, "up");
        const within = (...args: string[]) => ip("-n", name, ...args);
        await within("addr", "add", `${host}/24`, "dev", inside);
        await within("link", "set", "lo", "up");
        await within("link", "set", inside, "up");
        return {
          prefix: ["ip", "netns", "exec", name],
          host,
          setLink: async (up) => void (await ip("link", "set", outside, up ? "up" : "down")),
          leave: async () => {
            open.delete(name);
            await ip("netns", "del", name).catch(() => {});
          },
        };
      },
      close,
    };
    await (await network.join()).leave();
    return network;
  } catch (error) {
    await close();
    throw error;
  }
}

/** Uses namespaces if this user may create them. */
export async function createNetwork(wanted: "namespaces" | "proxies" | undefined): Promise<Network> {
  if (wanted === "proxies") return loopback;
  try {
    return await namespaces();
  } catch (error) {
    if (wanted === "namespaces") throw error;
    return loopback;
  }
}

/** A TCP proxy to the target of `port` on 127.0.0.1. */
export interface Wire {
  readonly port: number;
  /** Blocks all data without closing connections. */
  hold(held: boolean): void;
  /** Closes all connections. */
  cut(): void;
  /** Delays all data by this much. */
  delay(ms: number): void;
  close(): void;
}

export async function startWire(host: string, port: () => number): Promise<Wire> {
  const ends = new Set<() => void>();
  const sockets = new Set<Socket>();
  let isHeld = false;
  let delayMs = 0;
  const pass = (from: Socket, to: Socket) => {
    const waiting: Buffer[] = [];
    const send = () => {
      const data = waiting.shift();
      if (data === undefined || to.destroyed || to.write(data)) return;
      from.pause();
      to.once("drain", () => isHeld || from.resume());
    };
    from.on("data", (data) => {
      waiting.push(data);
      // Each timer sends the oldest chunk, so nothing overtakes when the delay ends.
      if (delayMs > 0 || waiting.length > 1) setTimeout(send, delayMs);
      else send();
    });
  };
  const listener = createServer((client) => {
    const server = connect(port(), "127.0.0.1");
    const end = () => {
      client.destroy();
      server.destroy();
      ends.delete(end);
      sockets.delete(client);
      sockets.delete(server);
    };
    ends.add(end);
    for (const socket of [client, server]) {
      sockets.add(socket);
      socket.setNoDelay().on("error", end).on("close", end);
    }
    pass(client, server);
    pass(server, client);
    if (isHeld) for (const socket of [client, server]) socket.pause();
  });
  listener.listen(0, host);
  await once(listener, "listening");
  const cut = () => {
    for (const end of ends) end();
  };
  return {
    port: (listener.address() as AddressInfo).port,
    hold(held) {
      isHeld = held;
      for (const socket of sockets) {
        if (held) socket.pause();
        else socket.resume();
      }
    },
    cut,
    delay: (ms) => {
      delayMs = ms;
    },
    close() {
      cut();
      listener.close();
    },
  };
}
