import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import { canonicalJson, type ParsedCall } from "#formats";
import type { Caller } from "#keys";
import type { Payments } from "#payments";
import { type AdmissionDeps, check } from "./admission/admit.ts";
import { answerJson } from "./http/answer.ts";
import type { JsonBody } from "./http/body.ts";
import { localsOf } from "./http/headers.ts";
import { hasBegun, type IdempotencyDeps, type IdempotencyRequest } from "./idempotency.ts";
import type { PaidRoute } from "./paid-route.ts";

export interface PayerDeps extends AdmissionDeps, Pick<IdempotencyDeps, "idempotency" | "isAlive"> {
  readonly payments: Pick<Payments, "x402" | "buyback">;
  readonly publicUrl: () => string;
}

/** Who calls, and under which key the answer is kept. */
export interface Payer {
  readonly caller: Caller;
  readonly idempotency: IdempotencyRequest;
}

/** Neither key nor account: it has the list price, and no uploads. */
const anonymous = { account: "", tier: "standard" } as const;

/** Where callers put a key, here or at a provider's. */
const keyHeaders = ["authorization", "x-api-key", "x-goog-api-key"];

/** Whether the call is to be paid for itself. Who sends a key wants that to pay, and is never quoted to. */
export const isPayable = ({ payments }: Pick<PayerDeps, "payments">, route: PaidRoute, req: Request): boolean =>
  route.payable === true && payments.x402 !== undefined && keyHeaders.every((name) => req.headers[name] === undefined);

/** Counts what comes without a key, before its body is read. */
export const countAnonymous = ({ keys }: Pick<PayerDeps, "keys">, req: Request, res: Response): Promise<void> =>
  keys.countAddress(req.socket.remoteAddress ?? "", localsOf(res).requestId);

/** One hash for all texts of the same request: a payment is for that alone. */
const hashOf = ({ method }: Request, { endpoint }: PaidRoute, body: JsonBody): string =>
  createHash("sha256").update(`${method} ${endpoint}\n`).update(canonicalJson(body.value)).digest("base64url");

/**
 * Takes the payment that came with the call. Undefined: there was none, or none for this call, and the answer has told
 * what to pay. Throws what `check` throws, before anything is quoted or taken: a call that is refused is not paid for.
 */
export async function payerOf(
  deps: PayerDeps,
  route: PaidRoute,
  { req, res, body, call }: { req: Request; res: Response; body: JsonBody; call: ParsedCall },
): Promise<Payer | undefined> {
  const { payments, keys } = deps;
  const { x402 } = payments;
  if (!x402) throw new TypeError("payments are switched off");
  const requestHash = hashOf(req, route, body);
  const { buybackToken } = call;

  async function priceNanoUsd(): Promise<bigint> {
    if (buybackToken !== undefined) payments.buyback.tokenOf(buybackToken);
    const { bound } = await check(deps, { call, route, caller: anonymous });
    // Nothing can be paid by a payment of nothing.
    return bound.mostNanoUsd > 0n ? bound.mostNanoUsd : 1n;
  }

  async function quote(error?: string): Promise<undefined> {
    const price = await priceNanoUsd();
    const resource = {
      url: `${deps.publicUrl()}${route.endpoint}`,
      description: `One call of ${call.model}`,
      mimeType: "application/json",
    };
    const quoted = await x402?.quote({ requestHash, priceNanoUsd: price, resource, buybackToken, error });
    if (!quoted) return;
    res.status(402).set({ "PAYMENT-REQUIRED": quoted.header, "cache-control": "no-store" });
    answerJson(res, JSON.stringify(quoted.body));
  }

  const header = req.get("payment-signature");
  if (header === undefined) return quote();
  const settlement = await x402.settle({
    header,
    requestHash,
    priceNanoUsd,
    hasBegun: (work) => hasBegun(deps, work),
  });
  res.set("PAYMENT-RESPONSE", settlement.receipt);
  if (settlement.kind === "refused") return quote(settlement.reason);
  const { account, key } = settlement;
  return { caller: keys.payer(account, settlement.buybackToken), idempotency: { key, hash: requestHash } };
}
