import type { Request } from "express";
import { insufficientBalance } from "#errors";
import type { Caller } from "#keys";
import type { Money } from "#money";
import { hasBegun, type IdempotencyDeps } from "../idempotency.ts";

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
