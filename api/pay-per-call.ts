import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import type { ParsedCall } from "#formats";
import { canonicalJson } from "#json";
import type { Caller } from "#keys";
import type { Payments } from "#payments";
import { type AdmissionDeps, check } from "./admission/admit.ts";
import { sessionCallerOf } from "./admission/authenticate.ts";
import { answerJson } from "./http/answer.ts";
import { addressOf, localsOf } from "./http/headers.ts";
import { hasBegun, type IdempotencyDeps, type IdempotencyRequest } from "./idempotency.ts";
import type { PaidRoute, RouteBody } from "./paid-route.ts";

export interface PayPerCallDeps extends AdmissionDeps, Pick<IdempotencyDeps, "idempotency" | "isAlive"> {
  readonly payments: Pick<Payments, "x402" | "buyback">;
  readonly publicUrl: () => string;
  readonly observePayment: (outcome: PaymentOutcome) => void;
}

/** The outcome of a request that pays by x402. `repeated`: its payment had been settled before. */
export type PaymentOutcome = "quoted" | "settled" | "repeated" | "refused" | "failed";

/** The account that pays for a call, and the key under which its answer is stored. */
export interface PaidBy {
  readonly caller: Caller;
  readonly idempotency: IdempotencyRequest;
}

/** A caller without a key pays the list price and has no uploads. */
const anonymous = { account: "", tier: "standard", models: null } as const;

/** Headers in which callers send a key, to this service or to a provider. */
const keyHeaders = ["authorization", "x-api-key", "x-goog-api-key"];

/** Returns true if the call must be paid for by x402. A caller who sends a key pays with that account, and gets no quote. */
export const isPayPerCall = ({ payments }: Pick<PayPerCallDeps, "payments">, route: PaidRoute, req: Request): boolean =>
  route.payable === true &&
  payments.x402 !== undefined &&
  sessionCallerOf(req) === undefined &&
  keyHeaders.every((name) => req.headers[name] === undefined);

/** Counts a request without a key, before its body is read. */
export const countAnonymous = ({ keys }: Pick<PayPerCallDeps, "keys">, req: Request, res: Response): Promise<void> =>
  keys.countAddress(addressOf(req), localsOf(res).requestId);

/** Hashes the canonical JSON, so formatting does not matter. A payment is valid for this request only. */
const hashOf = ({ method }: Request, { endpoint }: PaidRoute, body: RouteBody): string =>
  createHash("sha256").update(`${method} ${endpoint}\n`).update(canonicalJson(body.value)).digest("base64url");

/** Throws for a call that would be refused, before anything is quoted or taken for it. */
async function priceOf(deps: PayPerCallDeps, route: PaidRoute, call: ParsedCall): Promise<bigint> {
  if (call.buybackToken !== undefined) deps.payments.buyback.assertEligible(call.buybackToken);
  const { bound } = await check(deps, { call, route, caller: anonymous });
  // A quote of zero could not be paid.
  return bound.maxNanoUsd > 0n ? bound.maxNanoUsd : 1n;
}

/**
 * Takes the payment that came with the call. If there is none, or it does not pay for this call, the response is a 402 with
 * a quote, and the result is undefined. A call with a settled payment is not checked here: its answer may already be stored.
 */
export async function payPerCall(
  deps: PayPerCallDeps,
  route: PaidRoute,
  request: { req: Request; res: Response; body: RouteBody; call: ParsedCall },
): Promise<PaidBy | undefined> {
  const hasPayment = request.req.get("payment-signature") !== undefined;
  try {
    const { paidBy, outcome } = await takePayment(deps, route, request);
    deps.observePayment(outcome);
    return paidBy;
  } catch (error) {
    if (hasPayment) deps.observePayment("failed");
    throw error;
  }
}

async function takePayment(
  deps: PayPerCallDeps,
  route: PaidRoute,
  { req, res, body, call }: { req: Request; res: Response; body: RouteBody; call: ParsedCall },
): Promise<{ paidBy?: PaidBy; outcome: PaymentOutcome }> {
  const { x402 } = deps.payments;
  if (!x402) throw new TypeError("payments are switched off");
  const requestHash = hashOf(req, route, body);
  const header = req.get("payment-signature");
  const found = header === undefined ? undefined : await x402.find({ header, requestHash });
  let payment = found?.kind === "expired" && (await hasBegun(deps, found.settled)) ? found.settled : found;
  // The response includes the receipt of a refused payment, even if a later step throws.
  if (payment && payment.kind !== "open") res.set(payment.headers);

  if (payment?.kind !== "settled") {
    const priceNanoUsd = await priceOf(deps, route, call);
    if (payment?.kind === "open") {
      payment = await x402.settle(payment, priceNanoUsd);
      res.set(payment.headers);
    }
    if (payment?.kind !== "settled") {
      const url = `${deps.publicUrl()}${route.endpoint}`;
      const resource = { url, description: `One call of ${call.model}`, mimeType: "application/json" };
      const request = { requestHash, priceNanoUsd, resource, buybackToken: call.buybackToken };
      const quoted = await x402.quote(request, payment?.reason);
      res.status(402).set(quoted.headers);
      answerJson(res, JSON.stringify(quoted.body));
      return { outcome: payment ? "refused" : "quoted" };
    }
  }
  const { account, key, buybackToken } = payment;
  return {
    paidBy: { caller: deps.keys.payer(account, buybackToken), idempotency: { key, hash: requestHash } },
    outcome: found?.kind === "open" ? "settled" : "repeated",
  };
}
