import { createDefaultRpcTransport, createSolanaRpcFromTransport, type RpcTransport } from "@solana/kit";
import { withoutPassword } from "./config.ts";

/** Far below the lease of a claim, so that whoever holds one ends in time. */
const timeoutMs = 8_000;

/** Every call ends: a server that is silent counts as away. Throws `ConfigError` for an address that cannot be asked. */
export function connectRpc(url: string) {
  const send = createDefaultRpcTransport({ url: withoutPassword(url, "SOLANA_RPC_URL") });
  const transport: RpcTransport = (request) => {
    const late = AbortSignal.timeout(timeoutMs);
    return send({ ...request, signal: request.signal ? AbortSignal.any([request.signal, late]) : late });
  };
  return createSolanaRpcFromTransport(transport);
}

export type Rpc = ReturnType<typeof connectRpc>;
