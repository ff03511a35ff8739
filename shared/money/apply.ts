import type { Clock } from "#platform/clock";
import { groupCommit } from "#platform/group-commit";
import type { Logger } from "#platform/logger";
import { answered } from "#platform/mongo";
import type { Accounts } from "./accounts.ts";
import { assertRequestId } from "./request-id.ts";
import { untilDone } from "./retry.ts";
import { assertAmount } from "./usd.ts";

export interface Application {
  readonly account: string;
  readonly requestId: string;
  readonly heldNanoUsd: bigint;
  /** Of the entry that stands. */
  readonly costNanoUsd: bigint;
  readonly signal?: AbortSignal | undefined;
}

const groupLimit = 500;

export function createApply({ accounts, clock, log }: { accounts: Accounts; clock: Clock; log: Logger }) {
  /** All of them or none. */
  async function write(account: string, group: readonly Application[]): Promise<boolean> {
    const open: Record<`holds.${string}.amount`, bigint> = {};
    const ended: Record<`holds.${string}`, ""> = {};
    let heldNanoUsd = 0n;
    let costNanoUsd = 0n;
    for (const each of group) {
      open[`holds.${each.requestId}.amount`] = each.heldNanoUsd;
      ended[`holds.${each.requestId}`] = "";
      heldNanoUsd += each.heldNanoUsd;
      costNanoUsd += each.costNanoUsd;
    }
    const { matchedCount } = await answered(
      accounts.collection.updateOne(
        { _id: account, ...open },
        {
          $inc: { held: -heldNanoUsd, available: heldNanoUsd - costNanoUsd, openHolds: -group.length },
          $unset: ended,
        },
      ),
    );
    return matchedCount === 1;
  }

  async function writeGroup(account: string, group: readonly Application[]): Promise<(boolean | Error)[]> {
    try {
      if (await write(account, group)) return group.map(() => true);
      if (group.length === 1) return [false];
    } catch (error) {
      log.warn({ err: error, account, applications: group.length }, "decisions are not applied yet");
      throw error;
    }
    // Somebody else applied one of them.
    const outcomes: (boolean | Error)[] = [];
    for (const each of group) outcomes.push(await write(account, [each]).catch((error: Error) => error));
    return outcomes;
  }

  const commit = groupCommit<Application, boolean>({ limit: groupLimit, write: writeGroup });

  function assertSound({ requestId, heldNanoUsd, costNanoUsd }: Application): void {
    assertRequestId(requestId);
    assertAmount(heldNanoUsd, "heldNanoUsd");
    assertAmount(costNanoUsd, "costNanoUsd");
    if (costNanoUsd > heldNanoUsd) throw new RangeError(`${requestId} cost more than was held`);
  }

  /** Until it is applied. A hold that is there no more was ended before. */
  async function apply(application: Application): Promise<void> {
    assertSound(application);
    const { account, requestId, signal } = application;
    await untilDone(clock, signal, () => commit(account, requestId, application));
  }

  /** One try. True if this ended the hold. */
  async function applyOnce(application: Application): Promise<boolean> {
    assertSound(application);
    return commit(application.account, application.requestId, application);
  }

  return { apply, applyOnce };
}
