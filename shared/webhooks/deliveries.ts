import type { mongo as driver } from "mongoose";
import { conflict, invalidValue, notFound } from "#errors";
import { dayMs } from "#platform/clock";
import { findPage, longRunning, type Page } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import { type Collections, type DeliveryStatus, deliveryLifeMs, type StoredDelivery } from "./collections.ts";
import type { Endpoints } from "./endpoints.ts";
import type { EventType } from "./event-types.ts";
import { type OnDue, webhookIdOf } from "./record.ts";

const maxRecovered = 10_000;
const maxRecoverMs = 7 * dayMs;
/** Longer than the schedule of attempts, within which the body is needed. */
const scheduleMs = 4 * dayMs;
const batchSize = 1_000;

export interface DeliveryFilter {
  readonly endpoint?: string | undefined;
  readonly type?: EventType | undefined;
  readonly status?: DeliveryStatus | undefined;
  readonly objectId?: string | undefined;
  readonly since?: Date | undefined;
  /** Exclusive. */
  readonly until?: Date | undefined;
}

export type Delivery = ReturnType<typeof toDelivery>;

function toDelivery(stored: StoredDelivery) {
  const { _id: id, endpoint, url, type, objectId, status, attempts, nextAttemptAt, createdAt } = stored;
  return {
    id,
    webhookId: webhookIdOf(id),
    endpointId: endpoint ?? null,
    url,
    type,
    objectId,
    status,
    attempts,
    nextAttemptAt: status === "delivering" ? null : (nextAttemptAt ?? null),
    createdAt,
  };
}

type Filter = driver.Filter<StoredDelivery>;
type Update = driver.UpdateFilter<StoredDelivery>;

/** The deliveries of an account as it sees them. */
export function createDeliveryList(
  deps: Uses<"clock"> &
    Pick<Collections, "events" | "deliveries"> & { endpoints: Pick<Endpoints, "get">; onDue: OnDue },
) {
  const { events, deliveries, endpoints, onDue, clock } = deps;

  async function find(account: string, _id: string): Promise<StoredDelivery> {
    const stored = await deliveries.findOne({ account, _id });
    if (!stored) throw notFound("webhook delivery");
    return stored;
  }

  const bodyOf = async ({ account, event, isFull }: StoredDelivery): Promise<string | undefined> => {
    const stored = await events.findOne({ account, _id: event });
    return isFull ? stored?.fullBody : stored?.body;
  };

  async function assertEnabled(account: string, endpoint: string): Promise<void> {
    const { disabledReason } = await endpoints.get(account, endpoint);
    if (disabledReason) throw conflict("The webhook endpoint is disabled. Enable it first.");
  }

  /** The change that sends a delivery again: ten attempts, beginning now. */
  function sendAgain(now: number): Update {
    const times = { nextAttemptAt: new Date(now), expiresAt: new Date(now + deliveryLifeMs) };
    return { $set: { status: "pending", tries: 0, ...times }, $unset: { claim: "" } } as Update;
  }

  /** Keeps the bodies until the last attempt. */
  async function keepBodies(account: string, ids: readonly string[], now: number): Promise<void> {
    const filter = { account, _id: { $in: [...ids] } };
    await events.updateMany(filter, { $max: { expiresAt: new Date(now + scheduleMs) } }, longRunning);
  }

  return {
    /** Newest first. Throws 400 for an unknown `after`. */
    async list(account: string, page: Page, { since, until, objectId, ...equal }: DeliveryFilter): Promise<Delivery[]> {
      const given = Object.entries({ ...equal, objectId }).filter(([, value]) => value !== undefined);
      const found = await findPage(deliveries, page, {
        unknown: "this account has no webhook delivery",
        owner: { account },
        filter: {
          ...Object.fromEntries(given),
          ...((since ?? until) && { createdAt: { ...(since && { $gte: since }), ...(until && { $lt: until }) } }),
        } as Filter,
      });
      return found.map(toDelivery);
    },

    /** `body` is null after seven days. Throws 404. */
    async get(account: string, id: string): Promise<Delivery & { readonly body: string | null }> {
      const stored = await find(account, id);
      return { ...toDelivery(stored), body: (await bodyOf(stored)) ?? null };
    },

    /**
     * Sends a delivery again, whether or not it arrived, with the same `webhook-id`. Throws 404, and 409 if its endpoint is
     * disabled or its body was deleted.
     */
    async redeliver(account: string, id: string): Promise<{ delivery: Delivery }> {
      const stored = await find(account, id);
      if (stored.endpoint !== undefined) await assertEnabled(account, stored.endpoint);
      const now = clock.now();
      await keepBodies(account, [stored.event], now);
      if ((await bodyOf(stored)) === undefined) throw conflict("The body of this delivery was deleted after 7 days.");
      const resent = await deliveries.findOneAndUpdate({ account, _id: id }, sendAgain(now), {
        returnDocument: "after",
      });
      onDue([{ account, receiver: stored.receiver }]);
      return { delivery: toDelivery(resent ?? stored) };
    },

    /**
     * Sends the failed and skipped deliveries of an endpoint again that were recorded from `since` until `until`, the oldest
     * first, at most 10,000. Resolves with their number. Throws 400 for a time more than seven days ago, 404, and 409 for a
     * disabled endpoint.
     */
    async recover(account: string, endpoint: string, since: Date, until: Date | undefined): Promise<number> {
      await assertEnabled(account, endpoint);
      const now = clock.now();
      if (since.getTime() < now - maxRecoverMs - dayMs / 24) throw invalidValue("since", "since: at most 7 days ago.");
      if (since.getTime() > now) throw invalidValue("since", "since: is in the future.");
      if (until && until < since) throw invalidValue("until", "until: is before since.");
      const lost = {
        account,
        status: { $in: ["failed", "skipped"] },
        endpoint,
        isTest: { $exists: false },
        createdAt: { $gte: since, ...(until && { $lt: until }) },
      } as Filter;
      const found = await deliveries
        .find(lost, { ...longRunning, projection: { event: 1 }, sort: { createdAt: 1 }, limit: maxRecovered })
        .toArray();
      let count = 0;
      for (let at = 0; at < found.length; at += batchSize) {
        const batch = found.slice(at, at + batchSize);
        await keepBodies(
          account,
          batch.map(({ event }) => event),
          now,
        );
        const filter = { account, _id: { $in: batch.map(({ _id }) => _id) }, status: { $in: ["failed", "skipped"] } };
        count += (await deliveries.updateMany(filter as Filter, sendAgain(now), longRunning)).modifiedCount;
      }
      onDue([{ account, receiver: endpoint }]);
      return count;
    },
  };
}
