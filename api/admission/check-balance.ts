import type { Request } from "express";
import { insufficientBalance, rateLimited } from "#errors";
import type { Caller, Slot } from "#keys";
import type { Money } from "#money";
import { hasBegun, type IdempotencyDeps } from "../idempotency.ts";

/** Checks of the balance before a body is read. */

/** Shorter bodies are cheaper to read than a balance. */
const largeBytes = 64 * 1024;

/**
 * Throws 402 before reading a large body for an account without a balance, unless work or an answer exists under its
 * `Idempotency-Key`. Parsing the body is the expensive part of a refusal.
 */
export async function assertLargeBodyPayable(
  deps: Pick<IdempotencyDeps, "idempotency" | "isAlive"> & { readonly money: Money },
  req: Request,
  { account }: Caller,
): Promise<void> {
  // A chunked body has no length and counts as large.
  if (Number(req.headers["content-length"] ?? largeBytes) < largeBytes) return;
  // If MongoDB is unavailable, the call is refused later, when its money is held.
  const balances = await deps.money.balances([account]).catch(() => undefined);
  if ((balances?.get(account) ?? 1n) > 0n) return;
  const key = req.get("idempotency-key");
  if (key !== undefined && (await hasBegun(deps, { account, key }))) return;
  throw insufficientBalance("The account has no balance.");
}

const maxInFlight = 100;

/** Free calls share the slots and queues of paid ones, so a key whose account has no balance may have fewer in flight. */
export async function limitFreeCalls(
  { money }: { readonly money: Pick<Money, "balances"> },
  { inFlight, caller: { account } }: Slot,
): Promise<void> {
  if (inFlight < maxInFlight) return;
  const balances = await money.balances([account]);
  if ((balances.get(account) ?? 0n) > 0n) return;
  throw rateLimited(`A key without a balance has at most ${maxInFlight} calls in flight.`, 1);
}
