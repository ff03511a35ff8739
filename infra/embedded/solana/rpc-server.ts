import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import type { Chain } from "./chain.ts";
import { RpcError } from "./failures.ts";
import { createFaults, type Fault } from "./faults.ts";
import { methods } from "./methods.ts";

const call = z.object({
  id: z.unknown(),
  method: z.string(),
  params: z
    .array(z.unknown())
    .nullish()
    .transform((params) => params ?? []),
});
const identified = z.object({ id: z.union([z.string(), z.number(), z.null()]) });
const limitBytes = 1_000_000;

/** Serves the chain as JSON-RPC over HTTP on this machine alone. */
export async function openFace(chain: Chain, port = 0) {
  const faults = createFaults();
  const calls: Record<string, number> = {};

  async function run({ method, params }: z.infer<typeof call>, fault: Fault | undefined): Promise<unknown> {
    if (fault && "answer" in fault) return fault.answer;
    if (fault && "code" in fault) throw new RpcError(fault.code, fault.message);
    const known = Object.hasOwn(methods, method) ? methods[method] : undefined;
    if (!known) throw new RpcError(-32601, "Method not found");
    const result = await known(chain, params);
    if (fault && "after" in fault) await fault.after;
    return result;
  }

  /** Undefined: there is no answer, and the connection is to be cut. */
  async function answerTo(asked: unknown): Promise<Answer | undefined> {
    const { id = null } = identified.safeParse(asked).data ?? {};
    const given = call.safeParse(asked);
    if (!given.success) return { body: { id, error: { code: -32600, message: "Invalid request" } } };
    const { method } = given.data;
    calls[method] = (calls[method] ?? 0) + 1;
    const fault = faults.take(method);
    if (fault && "status" in fault) return { status: fault.status };
    const lost = fault && "lose" in fault ? fault.lose : undefined;
    if (lost === "request") return undefined;
    const body = await run(given.data, fault).then(
      (result) => ({ id, result }),
      (error) => ({ id, ...failure(error) }),
    );
    return lost === "answer" ? undefined : { body };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return withoutCall(request, response);
    const asked = parse(await bodyOf(request));
    if (asked === undefined)
      return answer(response, [{ body: { id: null, error: { code: -32700, message: "Parse error" } } }]);
    const answers = await Promise.all((Array.isArray(asked) ? asked : [asked]).map(answerTo));
    if (!answers.every((each) => each !== undefined)) return void request.socket.destroy();
    answer(response, answers, Array.isArray(asked));
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => request.socket.destroy());
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    /** How often each method was called. */
    calls: calls as Readonly<Record<string, number>>,
    close: async (): Promise<void> => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function failure(error: unknown) {
  if (error instanceof RpcError) return { error: { code: error.code, message: error.message, data: error.data } };
  return { error: { code: -32603, message: error instanceof Error ? error.message : String(error) } };
}

interface Answer {
  /** Of an HTTP answer without a body. */
  readonly status?: number;
  readonly body?: Readonly<Record<string, unknown>>;
}

function answer(response: ServerResponse, answers: readonly Answer[], isBatch = false): void {
  const status = answers.find((each) => each.status !== undefined)?.status;
  if (status !== undefined) return void response.writeHead(status).end();
  const bodies = answers.map(({ body }) => ({ jsonrpc: "2.0", ...body }));
  response.writeHead(200, { "content-type": "application/json", ...anywhere });
  // Slots and lamports are far from where a number loses precision.
  const numbers = (_: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);
  response.end(JSON.stringify(isBatch ? bodies : bodies[0], numbers));
}

/** A wallet in a browser asks from a page of its own. */
const anywhere = { "access-control-allow-origin": "*" };

function withoutCall({ method, url }: IncomingMessage, response: ServerResponse): void {
  if (method === "OPTIONS") {
    const allow = { "access-control-allow-methods": "POST, GET, OPTIONS", "access-control-max-age": "86400" };
    return void response.writeHead(204, { ...anywhere, ...allow, "access-control-allow-headers": "*" }).end();
  }
  if (method === "GET" && url === "/health") return void response.writeHead(200, anywhere).end("ok");
  response.writeHead(405, { allow: "POST", "content-type": "text/plain" });
  response.end("JSON-RPC by POST; there is no WebSocket here.\n");
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > limitBytes) throw new Error("too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
