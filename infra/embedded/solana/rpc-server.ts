import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import type { Chain } from "./chain.ts";
import { methods, RpcError } from "./rpc-methods.ts";

/** Called for each call: it may run it, delay it, answer in its place, or throw RpcError or HttpFault. */
export type Intercept = (method: string, run: () => Promise<unknown>) => Promise<unknown>;

const requestShape = z.object({
  id: z.unknown(),
  method: z.string(),
  params: z
    .array(z.unknown())
    .nullish()
    .transform((params) => params ?? []),
});
const idShape = z.object({ id: z.union([z.string(), z.number(), z.null()]) });
const limitBytes = 1_000_000;

/** Ends the HTTP request with this status; without one, closes the connection. */
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
    const { id = null } = idShape.safeParse(request).data ?? {};
    const parsed = requestShape.safeParse(request);
    if (!parsed.success) return { id, error: { code: -32600, message: "Invalid request" } };
    const { method, params } = parsed.data;
    try {
      return { id, result: await intercept(method, () => run(method, params)) };
    } catch (error) {
      if (error instanceof HttpFault) throw error;
      return { id, error: errorJson(error) };
    }
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return serveOther(request, response);
    const body = parseJson(await readBody(request));
    if (body === undefined) return write(response, { id: null, error: { code: -32700, message: "Parse error" } });
    write(response, Array.isArray(body) ? await Promise.all(body.map(respond)) : await respond(body));
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (error instanceof HttpFault && error.status !== undefined) response.writeHead(error.status).end();
      else request.socket.destroy();
    });
  });
  server.listen(port, "127.0.0.1");
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

function errorJson(error: unknown) {
  if (error instanceof RpcError) return { code: error.code, message: error.message, data: error.data };
  return { code: -32603, message: error instanceof Error ? error.message : String(error) };
}

/** Browser wallets call from pages of other origins. */
const cors = { "access-control-allow-origin": "*" };

function write(response: ServerResponse, body: object | readonly object[]): void {
  const withVersion = (each: object) => ({ jsonrpc: "2.0", ...each });
  // Slots and lamports are far below the integers that a number cannot hold.
  const asNumbers = (_: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);
  response.writeHead(200, { "content-type": "application/json", ...cors });
  response.end(JSON.stringify(Array.isArray(body) ? body.map(withVersion) : withVersion(body), asNumbers));
}

function serveOther({ method, url }: IncomingMessage, response: ServerResponse): void {
  if (method === "OPTIONS") {
    const allow = { "access-control-allow-methods": "POST, GET, OPTIONS", "access-control-max-age": "86400" };
    return void response.writeHead(204, { ...cors, ...allow, "access-control-allow-headers": "*" }).end();
  }
  if (method === "GET" && url === "/health") return void response.writeHead(200, cors).end("ok");
  response.writeHead(405, { allow: "POST", "content-type": "text/plain" });
  response.end("JSON-RPC by POST; there is no WebSocket here.\n");
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > limitBytes) throw new Error("the body is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
