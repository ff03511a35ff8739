import type { Request } from "express";
import type { ParsedCall } from "#formats";
import type { CallTarget, PaidCall } from "#jobs";
import type { Slot } from "#keys";
import type { Admitted, AdmittedTarget } from "./admission/admit.ts";
import type { PaidRoute } from "./paid-route.ts";

/** The headers of the request that are forwarded to the provider. */
export const passedHeaders = (req: Request, names: PaidRoute["passed"] = []): [string, string][] =>
  names.flatMap((name) => {
    const value = req.get(name);
    return value === undefined ? [] : [[name, value]];
  });

/** The payload of an admitted call, without its body and its times. `headers`: see `passedHeaders`. */
export function payloadOf(
  { instance, publicUrl }: { readonly instance: string; readonly publicUrl: () => string },
  { endpoint, format, framing, isFree }: PaidRoute,
  headers: readonly (readonly [name: string, value: string])[],
  { requestId, caller: { account, keyId, tier, buybackToken } }: Slot,
  call: ParsedCall,
  { targets, heldNanoUsd, leased, inputEstimate }: Admitted,
): Omit<PaidCall, "body" | "acceptedAt" | "deadlineAt"> {
  const fileParam = isFree ? undefined : call.features.get("file");
  const [first, ...fallbacks] = targets.map((target) => targetOf(target, fileParam));
  if (!first) throw new TypeError("a call of no model");
  return {
    v: 1,
    requestId,
    account,
    keyId,
    tier,
    endpoint,
    ...first,
    ...(call.models && { fallbacks }),
    stream: call.stream,
    ...(format && { format }),
    ...(framing && { framing }),
    ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
    ...(call.cacheMarks && !isFree && { cacheMarks: call.cacheMarks }),
    ...(call.uploads.length > 0 && { uploads: true }),
    ...(isFree && { isFree }),
    held: String(heldNanoUsd),
    ...(leased && { lease: leased.lease }),
    inputEstimate,
    replyTo: instance,
    ...(call.input && { publicUrl: publicUrl() }),
    ...(buybackToken !== null && { buybackToken }),
    ...(call.sessionId !== undefined && { sessionId: call.sessionId }),
    ...(call.user !== undefined && { user: call.user }),
    ...(call.tags && { tags: [...call.tags] }),
  };
}

const targetOf = (
  { model, name, upstreams, outputCap, isCapDefault, inputBound }: AdmittedTarget,
  fileParam: string | undefined,
): CallTarget => ({
  model: model.id,
  ...(name !== undefined && { name }),
  ...(upstreams && { upstreams: [...upstreams] }),
  outputCap,
  ...(isCapDefault && { isCapDefault }),
  ...(fileParam !== undefined && { fileBound: { tokens: inputBound, param: fileParam } }),
});
