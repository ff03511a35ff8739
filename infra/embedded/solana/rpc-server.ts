import { once } from "node:events";
import type { AddressInfo } from "node:net";
import express, { type ErrorRequestHandler } from "express";
import { z } from "zod";
import type { Chain } from "./chain.ts";
import { methods, RpcError } from "./rpc-methods.ts";

/** Wraps each call: it can run it, delay it, return another result, or throw RpcError or HttpFault. */
export type Intercept = (method: string, run: () => Promise<unknown>) => Promise<unknown>;

const requestShape = z.object({ id: z.unknown(), method: z.string(), params: z.array(z.unknown()).nullish() });
const idShape = z.object({ id: z.union([z.string(), z.number(), z.null()]) });
const limitBytes = 1_000_000;

/** Ends the HTTP request with this status, or closes the connection if no status is given. */
export class HttpFault extends Error {
  readonly status: number | undefined;
  constructor(status?: number) {
    super("fault");
    this.status = status;
  }
}

/** Serves the chain as JSON-RPC over HTTP on 127.0.0.1. */
export async function startRpcServer(chain: Chain, port = 0, intercept: Intercept = (_, run) => run()) {
  async function run(method: string, params: readonly unknown[]): Promise<unknown> {
    const handler = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (!handler) throw new RpcError(-32601, "Method not found");
    return handler(chain, params);
  }

  async function respond(request: unknown): Promise<object> {
    const answer = { jsonrpc: "2.0", id: idShape.safeParse(request).data?.id ?? null };
    const parsed = requestShape.safeParse(request);
    if (!parsed.success) return { ...answer, error: { code: -32600, message: "Invalid request" } };
    const { method, params } = parsed.data;
    try {
      return { ...answer, result: await intercept(method, () => run(method, params ?? [])) };
    } catch (error) {
      if (error instanceof HttpFault) throw error;
      return { ...answer, error: errorJson(error) };
    }
  }

  const app = express();
  // Slots and lamports are far below the integers that a number cannot represent.
  app.set("json replacer", (_: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value));
  // Browser wallets call from pages of other origins.
  app.use((_, response, next) => {
    response.set("access-control-allow-origin", "*");
    next();
  });
  app.get("/health", (_, response) => void response.send("ok"));
  app.options(/.*/, (_, response) => {
    const allow = { "access-control-allow-methods": "POST, GET, OPTIONS", "access-control-max-age": "86400" };
    response.set({ ...allow, "access-control-allow-headers": "*" }).sendStatus(204);
  });
  const parseBody = express.json({ type: () => true, limit: limitBytes, strict: false });
  app.post(/.*/, parseBody, async ({ body }, response) => {
    response.json(Array.isArray(body) ? await Promise.all(body.map(respond)) : await respond(body));
  });
  app.use((_, response) => {
    response.status(405).set("allow", "POST").type("text").send("JSON-RPC by POST; there is no WebSocket here.\n");
  });
  app.use(onError);

  const server = app.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async (): Promise<void> => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

const onError: ErrorRequestHandler = (error, request, response, _next) => {
  if (error.type === "entity.parse.failed")
    response.json({ jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } });
  else if (error instanceof HttpFault && error.status !== undefined) response.status(error.status).end();
  else request.socket.destroy();
};

function errorJson(error: unknown) {
  if (error instanceof RpcError) return { code: error.code, message: error.message, data: error.data };
  return { code: -32603, message: error instanceof Error ? error.message : String(error) };
}
