import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import type { Chain } from "./chain.ts";
import { RpcError } from "./failures.ts";
import { createFaults, type Fault } from "./faults.ts";
import { methods } from "./methods.ts";

const call = z.object({ id: z.unknown(), method: z.string(), params: z.array(z.unknown()).default([]) });
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

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = call.safeParse(parse(await bodyOf(request)));
    if (!asked.success) return answer(response, { error: { code: -32600, message: "Invalid request" } });
    const { id, method } = asked.data;
    calls[method] = (calls[method] ?? 0) + 1;
    const fault = faults.take(method);
    if (fault && "status" in fault) return void response.writeHead(fault.status).end();
    const lost = fault && "lose" in fault ? fault.lose : undefined;
    if (lost === "request") return void request.socket.destroy();
    const body = await run(asked.data, fault).then(
      (result) => ({ id, result }),
      (error) => ({ id, ...failure(error) }),
    );
    if (lost === "answer") return void request.socket.destroy();
    answer(response, body);
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

function answer(response: ServerResponse, body: Readonly<Record<string, unknown>>): void {
  response.writeHead(200, { "content-type": "application/json" });
  // Slots and lamports are far from where a number loses precision.
  response.end(
    JSON.stringify({ jsonrpc: "2.0", ...body }, (_, value) => (typeof value === "bigint" ? Number(value) : value)),
  );
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
