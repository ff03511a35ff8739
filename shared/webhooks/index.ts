/**
 * Webhooks (docs/api/webhooks.md): the endpoints of accounts, events, and their deliveries. Owns the collections
 * `webhookEndpoints`, `webhookEvents`, `webhookDeliveries` and `notices`.
 *
 *   an event      follows from a record of its object, such as the end of a job; `record` stores its body once
 *   a delivery    one event for one endpoint or callback, with its attempts
 *   a callback    the URL that a request named in `x-xm-webhook`
 *   a notice      an event that its account is shown under `/v1/events`, whether or not it has endpoints; not those of calls
 *   a receiver    an endpoint, or an origin of callbacks: a worker sends its deliveries together
 *
 * The ids of events and deliveries are hashes, so that deriving an event again makes the same one: a process repeats
 * `record` until it has noted in the object's record that this is done, and no crash loses or invents an event.
 * `nextAttemptAt` in MongoDB is the schedule. Deliveries and notices are stored for 30 days, bodies of events for 7.
 *
 * Events about the service itself belong to the account `operatorAccount`, which exists for notices alone.
 *
 * Secrets and custom headers are stored sealed: only workers can open them.
 *
 * Throws `notFound`, `conflict`, `invalidValue`, and what sealing throws.
 */
import type { Uses } from "#platform/uses";
import { openCollections } from "./collections.ts";
import { createDeliveryList } from "./deliveries.ts";
import { createEndpoints, type Seals } from "./endpoints.ts";
import { createNotices } from "./notices.ts";
import { createRecord, type OnDue } from "./record.ts";
import { createSealedValues } from "./sealed-values.ts";
import { createSending, createSkipOpen } from "./sending.ts";

export {
  type DeliveryStatus,
  deliveryStatuses,
  disabledReasons,
  type WebhookAttempt,
  webhooksSchema,
} from "./collections.ts";
export type { Delivery, DeliveryFilter } from "./deliveries.ts";
export type { Endpoint, EndpointPatch, NewEndpoint, Seals } from "./endpoints.ts";
export { type EventType, eventTypes, subscriptions } from "./event-types.ts";
export type { Notice } from "./notices.ts";
export type { NewEvent, Receiver } from "./record.ts";
export type { AttemptOutcome, ClaimedDelivery, DueReceiver } from "./sending.ts";

/** Has the notices for operators. No account of customers has this id. */
export const operatorAccount = "operator";

export function createWebhooks({ secrets, ...platform }: Uses<"mongo" | "clock"> & { secrets: Seals }) {
  const { clock } = platform;
  const collections = openCollections(platform);
  const skipOpen = createSkipOpen({ ...collections, clock });
  const { all, find, noteAttempt, ...endpoints } = createEndpoints({ ...collections, secrets, skipOpen, clock });
  let listener: OnDue = () => {};
  const onDue: OnDue = (receivers) => listener(receivers);
  return {
    endpoints,
    ...createRecord({ ...collections, endpoints: { all, find }, onDue, clock }),
    notices: createNotices(collections),
    deliveries: createDeliveryList({ ...collections, endpoints, onDue, clock }),
    sealedValues: createSealedValues(collections),
    /** For the workers of the pool `webhooks`. */
    sending: createSending({ ...collections, noteAttempt, skipOpen, clock }),
    /** Until it is set, receivers with due deliveries wait for maintenance. */
    whenDue(enqueue: OnDue): void {
      listener = enqueue;
    },
  };
}

export type Webhooks = ReturnType<typeof createWebhooks>;
