import type { ReleaseReason } from "#money";
import type { OpenCall, OpenCallDeps } from "./open-call.ts";

/** Captures a cost of zero and releases the hold. Resolves to the captured cost, which may be that of an earlier entry. */
export const createReleaseHold =
  ({ money, clock }: Pick<OpenCallDeps, "money" | "clock">) =>
  async (call: OpenCall, reason: ReleaseReason, signal?: AbortSignal): Promise<bigint> => {
    const { payload, leased } = call;
    if (payload.isFree) {
      call.costNanoUsd = 0n;
      return 0n;
    }
    const { account, requestId, keyId: key, endpoint, model, held, lease, acceptedAt } = payload;
    const { sessionId, user, tags } = payload;
    const totalMs = clock.now() - acceptedAt;
    const hold = { account, requestId, key, endpoint, model, heldNanoUsd: BigInt(held), lease, totalMs, signal };
    const { entry } = await money.release({ ...hold, sessionId, user, tags }, reason);
    call.costNanoUsd = entry.costNanoUsd;
    leased?.end(call.costNanoUsd);
    return call.costNanoUsd;
  };
