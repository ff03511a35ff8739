import { dayMs } from "#platform/clock";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";
import type { EventType } from "./event-types.ts";

export const deliveryStatuses = ["pending", "delivering", "delivered", "retrying", "failed", "skipped"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

export const disabledReasons = ["failing", "gone", "by_user"] as const;
export type DisabledReason = (typeof disabledReasons)[number];

/** A signing secret. The first of an endpoint is current; the others sign until their grace period is over. */
interface StoredSecret {
  readonly sealed: string;
  /** The shown part, such as `whsec_...ab12`. */
  readonly hint: string;
  readonly until?: Date;
}

/** An endpoint, or, under the id of the account, the secret of its callbacks (`x-xm-webhook`), which has no URL. */
const endpoint = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  url: { type: String },
  name: { type: String },
  events: { type: [String], default: undefined },
  headerNames: { type: [String], default: undefined },
  /** A sealed JSON object. */
  sealedHeaders: { type: String },
  includeResult: { type: Boolean },
  secrets: { type: [Object], required: true },
  disabledReason: { type: String, enum: disabledReasons },
  disabledAt: { type: Date },
  createdAt: { type: Date, required: true },
  lastSuccessAt: { type: Date },
  lastFailureAt: { type: Date },
  /** The first failure since the last success, and the number of failures since then. */
  failingSince: { type: Date },
  failures: { type: Number },
} as const;
export type StoredEndpoint = DocumentOf<
  typeof endpoint,
  { secrets: readonly StoredSecret[]; events?: readonly string[]; disabledReason?: DisabledReason }
>;

/** Where a delivery goes: an endpoint, or a URL that a request named. */
export type Destination =
  | { readonly endpoint: string; readonly url: string; readonly isFull?: true }
  | { readonly url: string };

const event = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  type: { type: String, required: true },
  objectId: { type: String, required: true },
  body: { type: String, required: true },
  /** The body with the result of a job, if an endpoint wants it. */
  fullBody: { type: String },
  /** Decided once, so that a repeated recording adds nothing. */
  destinations: { type: [Object], required: true },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
} as const;
export type StoredEvent = DocumentOf<typeof event, { type: EventType; destinations: readonly Destination[] }>;

/** One attempt to send a delivery. */
export interface WebhookAttempt {
  readonly at: Date;
  /** Undefined if there was no response. */
  readonly statusCode?: number | undefined;
  /** A short text, undefined after a success. */
  readonly error?: string | undefined;
  readonly durationMs: number;
  /** At most the first kilobyte of the response. */
  readonly responseSnippet?: string | undefined;
  readonly contentType?: string | undefined;
  readonly retryAfter?: string | undefined;
}

const delivery = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  event: { type: String, required: true },
  /** Groups the deliveries that a worker sends together: the endpoint, or a hash of the origin of a callback's URL. */
  receiver: { type: String, required: true },
  endpoint: { type: String },
  url: { type: String, required: true },
  type: { type: String, required: true },
  objectId: { type: String, required: true },
  isFull: { type: Boolean },
  /** Never retried, and sent even if the endpoint is disabled. */
  isTest: { type: Boolean },
  status: { type: String, enum: deliveryStatuses, required: true },
  /** The number of attempts since it was recorded or redelivered. */
  tries: { type: Number, required: true },
  attempts: { type: [Object], required: true },
  /** The schedule: due from then on. Set while the delivery is open; a claim moves it to the end of the claim. */
  nextAttemptAt: { type: Date },
  /** The claim of the worker that sends it. */
  claim: { type: String },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
} as const;
export type StoredDelivery = DocumentOf<
  typeof delivery,
  { type: EventType; status: DeliveryStatus; attempts: readonly WebhookAttempt[] }
>;

/** An event that its account is shown. */
const notice = {
  /** The id of the event. */
  _id: { type: String, required: true },
  account: { type: String, required: true },
  objectId: { type: String, required: true },
  body: { type: String, required: true },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
} as const;
export type StoredNotice = DocumentOf<typeof notice>;

export const bodyLifeMs = 7 * dayMs;
export const deliveryLifeMs = 30 * dayMs;
export const noticeLifeMs = 30 * dayMs;

const newestFirst = { createdAt: -1, _id: -1 } as const;

export const webhooksSchema = {
  module: "webhooks",
  shardKeys: { webhookEndpoints: "account", webhookEvents: "_id", webhookDeliveries: "account", notices: "account" },
  scatter: {
    "webhooks that are due": "scheduled: receivers with due deliveries, by a partial index",
    "secrets of webhooks under an old key": "operators, after a rotation of the sealing key",
    "failing webhooks": "operators: a bounded number of endpoints, by a sparse index",
  },
  migrations: [
    createCollections("webhookEndpoints, webhookEvents, webhookDeliveries", [
      {
        collection: "webhookEndpoints",
        indexes: [{ key: { account: 1, ...newestFirst } }, { key: { failingSince: 1 }, sparse: true }],
      },
      { collection: "webhookEvents", indexes: [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }] },
      {
        collection: "webhookDeliveries",
        indexes: [
          { key: { account: 1, ...newestFirst } },
          { key: { account: 1, status: 1, ...newestFirst } },
          { key: { account: 1, objectId: 1, ...newestFirst } },
          {
            key: { receiver: 1, nextAttemptAt: 1, account: 1 },
            partialFilterExpression: { nextAttemptAt: { $exists: true } },
          },
          { key: { expiresAt: 1 }, expireAfterSeconds: 0 },
        ],
      },
    ]),
    createCollections("notices", [
      {
        collection: "notices",
        indexes: [{ key: { account: 1, ...newestFirst } }, { key: { expiresAt: 1 }, expireAfterSeconds: 0 }],
      },
    ]),
  ],
} satisfies ModuleSchema;

export type Collections = ReturnType<typeof openCollections>;

export const openCollections = ({ mongo }: Uses<"mongo">) => ({
  endpoints: openCollection<StoredEndpoint>(mongo, "webhookEndpoints", endpoint).collection,
  events: openCollection<StoredEvent>(mongo, "webhookEvents", event).collection,
  deliveries: openCollection<StoredDelivery>(mongo, "webhookDeliveries", delivery).collection,
  notices: openCollection<StoredNotice>(mongo, "notices", notice).collection,
});
