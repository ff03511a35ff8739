/** The types of events, in families that endpoints can subscribe to as a whole. */
export const eventTypes = [
  "job.completed",
  "job.failed",
  "job.cancelled",
  "job.expired",
  "response.completed",
  "response.failed",
  "response.incomplete",
  "response.cancelled",
  "batch.completed",
  "batch.failed",
  "batch.expired",
  "batch.cancelled",
  "batch.paused",
  "message_batch.ended",
  "balance.low",
  "budget.threshold",
  "topup.completed",
  "key.expiring",
  "provider_key.invalid",
  "upstream.down",
  "upstream.key_refused",
  "upstream.recovered",
  "webhook.test",
] as const;
export type EventType = (typeof eventTypes)[number];

const familyOf = (type: EventType): string => `${type.slice(0, type.indexOf("."))}.*`;

/** Everything that an endpoint can subscribe to: `*`, a family such as `job.*`, or a type. */
export const subscriptions: readonly string[] = ["*", ...new Set(eventTypes.map(familyOf)), ...eventTypes];

/** A test goes to the endpoint that is tested, whatever endpoints subscribe to. */
export const isSubscribed = (events: readonly string[], type: EventType): boolean =>
  type !== "webhook.test" && ["*", familyOf(type), type].some((each) => events.includes(each));

/**
 * Returns true if the account is shown the event although no endpoint receives it. Events of calls are not notices: an
 * account has too many, and `/v1/jobs` lists them.
 */
export const isNotice = (type: EventType): boolean => !/^(?:job|response|webhook)\./.test(type);
