import type { Caller } from "../../api/keys/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { type Instance, startInstance } from "./keys-instance.ts";
import { type MovableClock, movableClock } from "./movable-clock.ts";
import { type Stores, testStores } from "./servers.ts";

export const usd = 1_000_000_000n;

export interface Call {
  readonly instance: Instance;
  readonly requestId: string;
  readonly heldNanoUsd: bigint;
  /** Charges the cost and ends the call. */
  end(costNanoUsd: bigint): Promise<void>;
  /** Charges the cost, and is killed before it ends the call. */
  charge(costNanoUsd: bigint): Promise<void>;
}

/** A call as admission creates it: slot, hold, budget. Rejects with the refusal. */
export async function begin(instance: Instance, caller: Caller, nanoUsd: bigint, minNanoUsd = nanoUsd): Promise<Call> {
  const { keys, money } = instance;
  const requestId = newRequestId();
  const slot = await keys.takeSlot(caller, { requestId, ttlMs: 60_000 });
  const { account, keyId: key } = caller;
  const ids = { account, key, requestId, endpoint: "/v1/chat/completions", model: "local/chat" };
  try {
    const remaining = (await keys.budgetRemaining(slot, minNanoUsd)) ?? nanoUsd;
    const heldNanoUsd = remaining < nanoUsd ? remaining : nanoUsd;
    const hold = { ...ids, maxNanoUsd: heldNanoUsd, minNanoUsd: heldNanoUsd, expiresAt: Date.now() + dayMs };
    await money.holdForCall({ ...hold, insufficientText: () => "insufficient" });
    const call = { ...ids, heldNanoUsd, totalMs: 1, attempts: [], usage: {}, estimated: false } as const;
    const charge = async (costNanoUsd: bigint) =>
      void (await money.charge({ ...call, costNanoUsd, status: "succeeded" }));
    await keys.takeTokens(slot, 1, heldNanoUsd).catch(async (error: unknown) => {
      await money.release({ ...ids, heldNanoUsd, totalMs: 1 }, { status: "failed" });
      throw error;
    });
    return {
      instance,
      requestId,
      heldNanoUsd,
      charge,
      async end(costNanoUsd) {
        await charge(costNanoUsd);
        await keys.release(slot, { costNanoUsd });
      },
    };
  } catch (error) {
    await keys.release(slot, { costNanoUsd: 0n });
    throw error;
  }
}

/** Two API instances, and a key with a budget. */
export async function startBudget(
  limitUsd: bigint,
  period: "day" | "week" | "month" | "total" = "day",
  given?: Stores,
  { clock, advance }: Pick<MovableClock, "clock" | "advance"> = movableClock(),
) {
  const stores = given ?? (await testStores());
  const [a, b] = [await startInstance(stores, clock), await startInstance(stores, clock)];
  const account = await a.money.createAccount({ name: "acme" });
  await a.money.credit(account.id, { amountNanoUsd: 1_000n * usd, idempotencyKey: "start" });
  const budget = { limitNanoUsd: limitUsd * usd, period };
  const { secret, key } = await a.keys.issue(account.id, { budget, limits: { concurrentRequests: 1_000 } });
  const caller = await a.keys.authenticate(secret);
  const spent = async () => (await a.keys.budgetOf(caller))?.spentNanoUsd;
  return { stores, a, b, caller, key, account, advance, clock, spent };
}

export const exceeded = { code: "budget_exceeded", status: 402, shouldRetry: false };
