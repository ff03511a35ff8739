import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { z } from "zod";
import { listen } from "#platform/process/listen";

const endpointShape = z.object({ id: z.string(), secret: z.string() });
const eventShape = z.object({ type: z.string(), data: z.object({ id: z.string() }) });

/** A request of the account's own interface. Rejects with the service's message. */
export type Call = (method: string, path: string, body?: object) => Promise<unknown>;

/**
 * Receives the account's webhooks of jobs on this machine, as a program of a customer would: creates an endpoint, and
 * checks the signature of what arrives with its secret. Stopping deletes the endpoint.
 */
export async function receiveWebhooks(call: Call, say: (line: string) => void) {
  const waiting = new Map<string, () => void>();
  const seen = new Set<string>();
  let secret: string | undefined;

  async function receive(request: IncomingMessage): Promise<number> {
    const body = await text(request);
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, String(value)]));
    if (secret === undefined) return 503;
    try {
      const { type, data } = eventShape.parse(new Webhook(secret).verify(body, headers));
      say(`webhook  ${data.id}  ${type}, with a valid signature`);
      seen.add(data.id);
      waiting.get(data.id)?.();
      return 204;
    } catch (error) {
      say(`webhook  refused: ${(error as Error).message}`);
      return 400;
    }
  }

  const server = createServer(
    (request, response) =>
      void receive(request).then(
        (status) => response.writeHead(status).end(),
        () => response.destroy(),
      ),
  );
  const port = await listen(server, { variable: "-", port: 0, host: "127.0.0.1" });
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  try {
    const fields = { url: `http://127.0.0.1:${port}/`, events: ["job.*"], name: "demo:async" };
    const created = endpointShape.parse(await call("POST", "/webhooks/endpoints", fields));
    ({ secret } = created);
    return {
      /** Resolves once the job's event has arrived. */
      arrival: (job: string): Promise<void> =>
        seen.has(job) ? Promise.resolve() : new Promise((resolve) => waiting.set(job, resolve)),
      async stop(): Promise<void> {
        close();
        await call("DELETE", `/webhooks/endpoints/${created.id}`);
      },
    };
  } catch (error) {
    close();
    say(`No webhooks: ${(error as Error).message}`);
    return undefined;
  }
}
