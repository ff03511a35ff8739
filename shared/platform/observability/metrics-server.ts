import { createServer, type RequestListener, type ServerResponse } from "node:http";
import type { Config } from "../config.ts";
import type { Logger } from "../logger.ts";
import { listen, PortInUse } from "../process/listen.ts";
import type { Metrics } from "./metrics.ts";

/** The response to a probe: 200 if `ok`, otherwise 503. */
export interface Health {
  readonly ok: boolean;
  readonly body: Readonly<Record<string, unknown>>;
}

const defaultPort = 9464;

type Probes = Readonly<Record<`/${string}`, () => Health | Promise<Health>>>;

const json = "application/json; charset=utf-8";

/**
 * Serves `/metrics` and the probes on a separate address, which callers of the API cannot reach. Throws ConfigError if
 * the port is unavailable, so start it before the process takes any work.
 */
export async function serveMetrics(deps: {
  config: Pick<Config, "METRICS_HOST" | "METRICS_PORT">;
  metrics: Metrics;
  log: Logger;
  probes?: Probes;
}) {
  const { config, metrics, log, probes = {} } = deps;
  const routes = new Map(Object.entries(probes));

  async function answer(path: string, res: ServerResponse): Promise<void> {
    if (path === "/metrics") {
      const text = await metrics.text();
      return void res.writeHead(200, { "content-type": metrics.contentType }).end(text);
    }
    const probe = routes.get(path);
    if (!probe) return void res.writeHead(404).end();
    const { ok, body } = await probe();
    res.writeHead(ok ? 200 : 503, { "content-type": json, "cache-control": "no-store" }).end(JSON.stringify(body));
  }

  const onRequest: RequestListener = (req, res) => {
    if (req.method !== "GET" && req.method !== "HEAD") return void res.writeHead(405, { allow: "GET, HEAD" }).end();
    const [path = ""] = (req.url ?? "").split("?", 1);
    answer(path, res).catch((error: unknown) => {
      log.error({ err: error, path }, "metrics or health checks could not be read");
      res.writeHead(500).end();
    });
  };
  const server = createServer(onRequest);
  const host = config.METRICS_HOST;
  const listenOn = (port: number) => listen(server, { variable: "METRICS_PORT", port, host });
  const port = await listenOn(config.METRICS_PORT ?? defaultPort).catch((error: unknown) => {
    // An API and a worker can start on one machine without settings, but an explicitly configured port must be free.
    if (config.METRICS_PORT !== undefined || !(error instanceof PortInUse)) throw error;
    return listenOn(0);
  });
  if (config.METRICS_PORT === undefined && port !== defaultPort)
    log.warn(
      { port },
      `port ${defaultPort} is in use, so metrics are served on another one; set METRICS_PORT for a fixed port`,
    );

  return {
    port,
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}
