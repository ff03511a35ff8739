import { notFound } from "#errors";
import type { JsonObject } from "#json";
import { hashedBase62 } from "#platform/ids";
import { ignoreDuplicate } from "#platform/mongo/connection";
import type { Uses } from "#platform/uses";
import {
  bodyLifeMs,
  type Collections,
  type Destination,
  deliveryLifeMs,
  noticeLifeMs,
  type StoredDelivery,
  type StoredEndpoint,
  type StoredEvent,
} from "./collections.ts";
import type { Endpoints } from "./endpoints.ts";
import { type EventType, isNotice, isSubscribed } from "./event-types.ts";

/** An event, as it follows from the record of its object. */
export interface NewEvent {
  readonly account: string;
  readonly type: EventType;
  /** The object that the event is about: `job_...`, `top_...`, `key_...`, or the account. */
  readonly objectId: string;
  /** Tells events of one type and object apart, such as the beginning of a period. Defaults to none: there is only one. */
  readonly occurrence?: string;
  readonly createdAt: Date;
  /** Renders `data`. Called only if somebody receives the event; `isFull`: with the result of a job. */
  readonly data: (isFull: boolean) => Promise<JsonObject> | JsonObject;
  /** `x-xm-webhook` of the request: a URL, or the id of an endpoint. */
  readonly callback?: string | undefined;
}

export interface Receiver {
  readonly account: string;
  readonly receiver: string;
}

/** Is called with receivers that have due deliveries. */
export type OnDue = (receivers: readonly Receiver[]) => void;

const hashLength = 32;

/** Tests of an endpoint wait for none of its other deliveries. */
const testSuffix = ".test";
/** The endpoint of a receiver. Undefined for an origin of callbacks. */
export const endpointOf = (receiver: string): string | undefined =>
  receiver.startsWith("we_") ? receiver.replace(testSuffix, "") : undefined;
export const isTestReceiver = (receiver: string): boolean => receiver.endsWith(testSuffix);

const eventIdOf = ({ account, objectId, type, occurrence = "" }: NewEvent): string =>
  `evt_${hashedBase62(hashLength, account, objectId, type, occurrence)}`;

const deliveryIdOf = (event: string, destination: Destination): string =>
  `wd_${hashedBase62(hashLength, event, "endpoint" in destination ? destination.endpoint : destination.url)}`;

/** Equal over all attempts, for receivers to recognize repetitions. */
export const webhookIdOf = (deliveryId: string): string => deliveryId.replace(/^wd_/, "whm_");

/** Callbacks to one origin are sent together, whatever their paths. */
const receiverOf = (account: string, destination: Destination): string =>
  "endpoint" in destination
    ? destination.endpoint
    : `wr_${hashedBase62(hashLength, account, new URL(destination.url).origin)}`;

function toDestination({ _id: id, url = "", includeResult }: StoredEndpoint): Destination {
  return { endpoint: id, url, ...(includeResult && { isFull: true as const }) };
}

/** A URL that is both an endpoint's and the callback's receives an event once. */
function destinationsOf(endpoints: readonly StoredEndpoint[], { type, callback }: NewEvent): Destination[] {
  const wanted = endpoints.filter(({ _id, events = [] }) => _id === callback || isSubscribed(events, type));
  const isCovered = wanted.some(({ url, disabledReason }) => url === callback && disabledReason === undefined);
  const isUrl = callback !== undefined && !callback.startsWith("we_");
  return [...wanted.map(toDestination), ...(isUrl && !isCovered ? [{ url: callback }] : [])];
}

export function createRecord(
  deps: Uses<"clock"> &
    Pick<Collections, "events" | "deliveries" | "notices"> & {
      endpoints: Pick<Endpoints, "all" | "find">;
      onDue: OnDue;
    },
) {
  const { events, deliveries, notices, endpoints, onDue, clock } = deps;

  async function bodyOf(event: NewEvent, isFull: boolean): Promise<string> {
    const seconds = Math.floor(event.createdAt.getTime() / 1_000);
    const data = await event.data(isFull);
    return JSON.stringify({ id: eventIdOf(event), object: "event", created_at: seconds, type: event.type, data });
  }

  /** The first recording of an event decides its body and its destinations. */
  async function storeEvent(event: NewEvent, destinations: readonly Destination[]): Promise<StoredEvent> {
    const { account, type, objectId, createdAt } = event;
    const _id = eventIdOf(event);
    const isFull = destinations.some((each) => "isFull" in each);
    const stored: StoredEvent = {
      _id,
      account,
      type,
      objectId,
      body: await bodyOf(event, false),
      ...(isFull && { fullBody: await bodyOf(event, true) }),
      destinations,
      createdAt,
      expiresAt: new Date(clock.now() + bodyLifeMs),
    };
    const inserted = await events.insertOne(stored).catch(ignoreDuplicate);
    return inserted ? stored : ((await events.findOne({ account, _id })) ?? stored);
  }

  /** An event of a disabled endpoint is skipped: only `recover` or `redeliver` sends it. */
  async function storeDelivery(event: StoredEvent, destination: Destination, isSkipped: boolean): Promise<string> {
    const { _id, account, type, objectId } = event;
    const isTest = type === "webhook.test";
    const receiver = receiverOf(account, destination) + (isTest ? testSuffix : "");
    const now = clock.now();
    const delivery: StoredDelivery = {
      _id: deliveryIdOf(_id, destination),
      account,
      event: _id,
      receiver,
      url: destination.url,
      ...("endpoint" in destination && { endpoint: destination.endpoint }),
      ...("isFull" in destination && { isFull: true }),
      ...(isTest && { isTest: true }),
      type,
      objectId,
      status: isSkipped ? "skipped" : "pending",
      tries: 0,
      attempts: [],
      ...(!isSkipped && { nextAttemptAt: new Date(now) }),
      createdAt: new Date(now),
      expiresAt: new Date(now + (isSkipped ? bodyLifeMs : deliveryLifeMs)),
    };
    await deliveries.insertOne(delivery).catch(ignoreDuplicate);
    return receiver;
  }

  /** `known`: the endpoints whose state decides what is skipped. */
  async function store(event: NewEvent, destinations: readonly Destination[], known: readonly StoredEndpoint[]) {
    const stored = await storeEvent(event, destinations);
    const disabled = new Set(known.flatMap(({ _id, disabledReason }) => (disabledReason ? [_id] : [])));
    const receivers = await Promise.all(
      stored.destinations.map((each) => storeDelivery(stored, each, "endpoint" in each && disabled.has(each.endpoint))),
    );
    onDue([...new Set(receivers)].map((receiver) => ({ account: event.account, receiver })));
    return stored;
  }

  async function storeNotice(event: NewEvent, body: string): Promise<void> {
    const { account, objectId, createdAt } = event;
    const expiresAt = new Date(createdAt.getTime() + noticeLifeMs);
    const notice = { _id: eventIdOf(event), account, objectId, body, createdAt, expiresAt };
    await notices.insertOne(notice).catch(ignoreDuplicate);
  }

  return {
    /**
     * Records an event with a delivery for each endpoint and callback that receives it, and then as a notice if it is one.
     * Repeating it changes nothing, so a process that derives an event from a record repeats it until it has noted in the
     * record that this is done.
     */
    async record(event: NewEvent): Promise<void> {
      const known = await endpoints.all(event.account);
      const destinations = destinationsOf(known, event);
      const stored = destinations.length > 0 ? await store(event, destinations, known) : undefined;
      if (isNotice(event.type)) await storeNotice(event, stored?.body ?? (await bodyOf(event, false)));
    },

    /**
     * Records an event `webhook.test` for one endpoint, even if it is disabled. Resolves with its delivery, which is sent
     * once. `occurrence`: the id of the request. Throws 404.
     */
    async recordTest(account: string, id: string, occurrence: string): Promise<{ readonly delivery: string }> {
      const endpoint = await endpoints.find(account, id);
      if (!endpoint) throw notFound("webhook endpoint");
      const data = () => ({ id, object: "webhook_endpoint", url: endpoint.url, name: endpoint.name ?? null });
      const createdAt = new Date(clock.now());
      const event = { account, type: "webhook.test" as const, objectId: id, occurrence, createdAt, data };
      const destination = toDestination(endpoint);
      await store(event, [destination], []);
      return { delivery: deliveryIdOf(eventIdOf(event), destination) };
    },
  };
}
