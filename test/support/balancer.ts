import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";
import { systemClock } from "#platform/clock";
import { eventually } from "./service.ts";

const probeMs = 250;
/** The consecutive failures after which an instance is removed, as in the chart's readiness probe. */
const failuresToRemove = 2;

interface Backend {
  readonly url: URL;
  failures: number;
}

/**
 * Acts as a Kubernetes Service: new connections go in turn to the instances whose last `/readyz` was 200, and an open
 * connection stays with its instance. An instance that is no longer ready is detected with the same delay.
 */
export async function startBalancer() {
  const backends: Backend[] = [];
  let turn = 0;

  async function probe(backend: Backend): Promise<void> {
    const isReady = await fetch(new URL("/readyz", backend.url), { signal: AbortSignal.timeout(5_000) }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.ok;
      },
      () => false,
    );
    backend.failures = isReady ? 0 : backend.failures + 1;
  }
  const stopProbing = systemClock.every(probeMs, () => {
    for (const backend of backends) void probe(backend);
  });

  const sockets = new Set<Socket>();
  const listener = createServer({ allowHalfOpen: true }, (client) => {
    const ready = backends.filter(({ failures }) => failures < failuresToRemove);
    const backend = ready[turn++ % ready.length];
    if (!backend) return void client.resetAndDestroy();
    const server = connect({ host: backend.url.hostname, port: Number(backend.url.port), allowHalfOpen: true });
    for (const [one, other] of [
      [client, server],
      [server, client],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.resetAndDestroy()).once("close", () => sockets.delete(one));
      one.pipe(other);
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  onTestFinished(() => {
    stopProbing();
    for (const socket of sockets) socket.destroy();
    listener.close();
  });

  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    /** Resolves once the instance receives connections. */
    async add(baseUrl: string): Promise<void> {
      const backend = { url: new URL(baseUrl), failures: failuresToRemove };
      backends.push(backend);
      await eventually(() => backend.failures === 0);
    },
  };
}
