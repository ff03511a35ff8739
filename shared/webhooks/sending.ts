import type { mongo as driver } from "mongoose";
import { dayMs } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import { scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import {
  bodyLifeMs,
  type Collections,
  type DisabledReason,
  type StoredDelivery,
  type StoredEndpoint,
  type WebhookAttempt,
} from "./collections.ts";
import type { Endpoints } from "./endpoints.ts";
import type { EventType } from "./event-types.ts";
import { endpointOf, isTestReceiver, type Receiver, webhookIdOf } from "./record.ts";

/** Longer than an attempt takes. A delivery whose worker died is due again after this time. */
const claimMs = 40_000;
/** Attempts that are shown. Redelivery adds more. */
const maxShownAttempts = 20;
const pageSize = 100;

/** Until then the body of a delivery that is due at this time is needed, even if no worker runs for a while. */
const sentBy = (due: Date) => new Date(due.getTime() + dayMs);

/** A receiver with due deliveries. */
export interface DueReceiver extends Receiver {
  /** When its longest waiting delivery became due. */
  readonly since: Date;
}

/** A delivery to send now. */
export interface ClaimedDelivery extends Receiver {
  readonly id: string;
  readonly event: string;
  readonly claim: string;
  /** The endpoint; undefined for a callback. */
  readonly endpoint: string | undefined;
  readonly url: string;
  readonly type: EventType;
  /** The number of this attempt since the delivery was recorded or redelivered, counting from 1. */
  readonly attempt: number;
  /** The attempt is not repeated. */
  readonly isTest: boolean;
  /** Sent as `webhook-id`. */
  readonly webhookId: string;
  /** Sent unchanged. Undefined if it was deleted after seven days: the delivery then fails. */
  readonly body: string | undefined;
  /** The id under which the secrets and the headers are sealed for the account. */
  readonly sealedAs: string;
  /** Sealed `whsec_...`, which all sign. None if the secret of callbacks does not exist. */
  readonly secrets: readonly string[];
  /** A sealed JSON object of custom headers. */
  readonly headers: string | undefined;
}

export type AttemptOutcome =
  | { readonly kind: "delivered" }
  /** Sent again at this time. */
  | { readonly kind: "retry"; readonly at: Date }
  | { readonly kind: "failed" }
  /** The receiver answered 410: its endpoint is disabled. */
  | { readonly kind: "gone" };

type Filter = driver.Filter<StoredDelivery>;
type Update = driver.UpdateFilter<StoredDelivery>;

/** Ends the open deliveries of an endpoint without sending them, except those that a worker is sending. */
export const createSkipOpen =
  ({ deliveries, clock }: Uses<"clock"> & Pick<Collections, "deliveries">) =>
  async (account: string, receiver: string): Promise<void> => {
    const isUnclaimed = { $or: [{ claim: { $exists: false } }, { nextAttemptAt: { $lte: new Date(clock.now()) } }] };
    const open = { account, receiver, nextAttemptAt: { $exists: true }, ...isUnclaimed } as Filter;
    const expiresAt = new Date(clock.now() + bodyLifeMs);
    const change = { $set: { status: "skipped", expiresAt }, $unset: { nextAttemptAt: "", claim: "" } } as Update;
    await deliveries.updateMany(open, change);
  };

/** What the workers of the pool `webhooks` do with the store. */
export function createSending(
  deps: Uses<"clock"> &
    Collections & {
      noteAttempt: Endpoints["noteAttempt"];
      skipOpen: ReturnType<typeof createSkipOpen>;
    },
) {
  const { deliveries, events, endpoints, noteAttempt, skipOpen, clock } = deps;
  const now = () => new Date(clock.now());

  const secretsOf = (stored: StoredEndpoint | null): string[] =>
    (stored?.secrets ?? [])
      .filter(({ until }) => until === undefined || until.getTime() > clock.now())
      .map(({ sealed }) => sealed);

  /** The document of the endpoint, or that of the secret of callbacks. */
  const findOwner = (account: string, receiver: string) =>
    endpoints.findOne({ account, _id: endpointOf(receiver) ?? account });

  async function claimOne(
    { account, receiver }: Receiver,
    owner: StoredEndpoint | null,
  ): Promise<ClaimedDelivery | undefined> {
    const claim = randomBase62(20);
    const change = { $set: { status: "delivering", claim, nextAttemptAt: new Date(clock.now() + claimMs) } } as Update;
    const isDue = { account, receiver, nextAttemptAt: { $lte: now() } } as Filter;
    const found = await deliveries.findOneAndUpdate(isDue, change, { sort: { nextAttemptAt: 1 } });
    if (!found) return undefined;
    const event = await events.findOne({ account, _id: found.event });
    return {
      account,
      receiver,
      id: found._id,
      event: found.event,
      claim,
      endpoint: found.endpoint,
      url: owner?.url ?? found.url,
      type: found.type,
      attempt: found.tries + 1,
      isTest: found.isTest ?? false,
      webhookId: webhookIdOf(found._id),
      body: found.isFull ? event?.fullBody : event?.body,
      sealedAs: owner?._id ?? account,
      secrets: secretsOf(owner),
      headers: owner?.sealedHeaders,
    };
  }

  return {
    /**
     * Receivers with due deliveries, in the order of their ids, after the one with the id `after`. A receiver with many due
     * deliveries hides no other one. Continue with the last id until there are fewer than `limit`.
     */
    async due(limit: number, after = ""): Promise<DueReceiver[]> {
      const found = new Map<string, DueReceiver>();
      for (let last = after; ; ) {
        const filter = { receiver: { $gt: last }, nextAttemptAt: { $lte: now() } } as Filter;
        const page = await deliveries
          .find(filter, {
            ...scatter("webhooks that are due"),
            projection: { _id: 0, account: 1, receiver: 1, nextAttemptAt: 1 },
            sort: { receiver: 1, nextAttemptAt: 1 },
            limit: pageSize,
          })
          .toArray();
        for (const { account, receiver, nextAttemptAt = now() } of page)
          if (!found.has(receiver) && found.size < limit)
            found.set(receiver, { account, receiver, since: nextAttemptAt });
        last = page.at(-1)?.receiver ?? last;
        if (page.length < pageSize || found.size >= limit) return [...found.values()];
      }
    },

    /**
     * Claims up to `limit` due deliveries, the longest due first. A claim ends with `storeAttempt`, or by itself.
     * Deliveries to an endpoint that is disabled or deleted are skipped instead, except tests.
     */
    async claim(receiver: Receiver, limit: number): Promise<ClaimedDelivery[]> {
      const { account, receiver: id } = receiver;
      const owner = await findOwner(account, id);
      const isEnabled = endpointOf(id) === undefined || (owner && !owner.disabledReason);
      if (!isEnabled && !isTestReceiver(id)) await skipOpen(account, id);
      const claimed: ClaimedDelivery[] = [];
      while (claimed.length < limit) {
        const next = await claimOne(receiver, owner);
        if (!next) break;
        claimed.push(next);
      }
      return claimed;
    },

    /** Resolves to undefined if nothing is due. `isFailing`: the last attempt failed; such a receiver gets one at a time. */
    async find({ account, receiver }: Receiver): Promise<{ url: string; isFailing: boolean } | undefined> {
      const isDue = { account, receiver, nextAttemptAt: { $lte: now() } } as Filter;
      const due = await deliveries.findOne(isDue, { projection: { url: 1 }, sort: { nextAttemptAt: 1 } });
      if (!due) return undefined;
      if (endpointOf(receiver) !== undefined) {
        const owner = await findOwner(account, receiver);
        return {
          url: owner?.url ?? due.url,
          isFailing: owner?.failingSince !== undefined && !isTestReceiver(receiver),
        };
      }
      const retrying = { account, receiver, nextAttemptAt: { $exists: true }, status: "retrying" } as Filter;
      return { url: due.url, isFailing: (await deliveries.countDocuments(retrying, { limit: 1 })) === 1 };
    },

    /**
     * Stores an attempt and its outcome. Changes nothing if the claim has ended, or the delivery was redelivered since. The
     * endpoint is updated first, so that a crash in between repeats the attempt instead of forgetting a 410. Resolves with
     * the reason if the endpoint was disabled for this attempt.
     */
    async storeAttempt(
      { account, id, event, claim, endpoint, url, isTest }: ClaimedDelivery,
      attempt: WebhookAttempt,
      outcome: AttemptOutcome,
    ): Promise<DisabledReason | undefined> {
      const { kind } = outcome;
      // A test says nothing about whether events arrive.
      const disabled =
        endpoint === undefined || isTest
          ? undefined
          : await noteAttempt(account, endpoint, attempt.at, kind === "retry" ? "failed" : kind);
      const isRetried = kind === "retry" && !isTest;
      const status = isRetried ? "retrying" : kind === "delivered" ? "delivered" : "failed";
      // The receiver may ask for longer pauses than those of the schedule.
      if (isRetried) await events.updateOne({ account, _id: event }, { $max: { expiresAt: sentBy(outcome.at) } });
      await deliveries.updateOne(
        { account, _id: id, claim } as Filter,
        {
          $set: { status, url, ...(isRetried && { nextAttemptAt: outcome.at }) },
          $unset: { claim: "", ...(!isRetried && { nextAttemptAt: "" }) },
          $inc: { tries: 1 },
          $push: { attempts: { $each: [attempt], $slice: -maxShownAttempts } },
        } as Update,
        { ignoreUndefined: true },
      );
      return disabled;
    },
  };
}
