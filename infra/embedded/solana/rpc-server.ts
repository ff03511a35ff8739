import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import type { Chain } from "./chain.ts";
import { methods, RpcError } from "./rpc-methods.ts";
import type { TransactionError } from "./transactions.ts";

/** What a test makes go wrong with one call. */
export type Fault =
  /** The connection is closed, before the call takes effect or before its answer is sent. */
  | { readonly lose: "request" | "answer" }
  /** This result, without running the call. */
  | { readonly answer: unknown }
  /** This HTTP status (429, 503), without running the call. */
  | { readonly status: number }
  /** This JSON-RPC error, without running the call. */
  | { readonly code: number; readonly message: string }
  /** The call runs at once; its answer is sent when this settles. */
  | { readonly after: Promise<unknown> };

/** The fault for a simulation that fails with this error. */
export const failedSimulation = (err: TransactionError): Fault => ({
  answer: {
    context: { apiVersion: "3.0.0", slot: 0 },
    value: { err, logs: [], unitsConsumed: 0, accounts: null, returnData: null, innerInstructions: null },
  },
});

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
class HttpFault extends Error {
  readonly status: number | undefined;
  constructor(status?: number) {
    super("fault");
    this.status = status;
  }
}

/** Serves the chain as JSON-RPC over HTTP on 127.0.0.1. */
export async function startRpcServer(chain: Chain, port = 0) {
  const faults = new Map<string, Fault[]>();
  const calls: Record<string, number> = {};

  async function run(method: string, params: readonly unknown[], fault: Fault | undefined): Promise<unknown> {
    if (fault && "answer" in fault) return fault.answer;
    if (fault && "code" in fault) throw new RpcError(fault.code, fault.message);
    const handler = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (!handler) throw new RpcError(-32601, "Method not found");
    const result = await handler(chain, params);
    if (fault && "after" in fault) await fault.after;
    return result;
  }

  async function respond(request: unknown): Promise<object> {
    const { id = null } = idShape.safeParse(request).data ?? {};
    const parsed = requestShape.safeParse(request);
    if (!parsed.success) return { id, error: { code: -32600, message: "Invalid request" } };
    const { method, params } = parsed.data;
    calls[method] = (calls[method] ?? 0) + 1;
    const fault = faults.get(method)?.shift();
    if (fault && "status" in fault) throw new HttpFault(fault.status);
    const lost = fault && "lose" in fault ? fault.lose : undefined;
    if (lost === "request") throw new HttpFault();
    const body = await run(method, params, fault).then(
      (result) => ({ id, result }),
      (error: unknown) => ({ id, error: errorJson(error) }),
    );
    if (lost === "answer") throw new HttpFault();
    return body;
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
    faults: {
      /** The next calls of this method meet this fault, after those planned before. */
      next: (method: string, fault: Fault, times = 1): void =>
        void faults.set(method, [...(faults.get(method) ?? []), ...Array<Fault>(times).fill(fault)]),
      clear: (): void => faults.clear(),
    },
    /** How often each method was called. */
    calls: calls as Readonly<Record<string, number>>,
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
