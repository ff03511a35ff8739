import { createDefaultRpcTransport, createSolanaRpcFromTransport, type RpcTransport } from "@solana/kit";

const timeoutMs = 10_000;

/** Every call ends: a node that is silent counts as away. */
export function connectRpc(url: string) {
  const send = createDefaultRpcTransport({ url });
  const transport: RpcTransport = (request) => {
    const late = AbortSignal.timeout(timeoutMs);
    return send({ ...request, signal: request.signal ? AbortSignal.any([request.signal, late]) : late });
  };
  return createSolanaRpcFromTransport(transport);
}

export type Rpc = ReturnType<typeof connectRpc>;
