import { z } from "zod";
import { formats } from "#formats";

/** Each pool has its own queue, so that operators scale them separately. */
export const pools = ["chat", "embeddings", "image", "media", "batches", "webhooks", "maintenance"] as const;
export type Pool = (typeof pools)[number];
export const isPool = (name: string | undefined): name is Pool => (pools as readonly string[]).includes(name ?? "");

/** The pools that run calls. */
export type CallPool = Exclude<Pool, "batches" | "webhooks" | "maintenance">;
const otherPools: readonly Pool[] = ["batches", "webhooks", "maintenance"];
export const callPools = pools.filter((pool): pool is CallPool => !otherPools.includes(pool));
/** The chat pool may have several queues (shards.ts). */
export const isCallQueue = (queue: string): boolean => !otherPools.some((pool) => pool === queue);

/** Pools whose calls are short and numerous: the calls share jobs, and their holds are drawn from leases. */
export const textPools: readonly Pool[] = ["chat", "embeddings"];
export const isTextPool = (pool: Pool): boolean => textPools.includes(pool);

/** An upstream that a call may go to: with the operator's key or, as an object, with a provider key of the caller's account. */
const callUpstream = z.union([z.string(), z.object({ upstream: z.string(), key: z.string() })]);
export type CallUpstream = z.infer<typeof callUpstream>;
export type OwnUpstream = Exclude<CallUpstream, string>;
export const isOwnUpstream = (upstream: CallUpstream): upstream is OwnUpstream => typeof upstream !== "string";

/** A model that a call may go to, and the limits of the hold for it. */
const target = z.object({
  model: z.string(),
  /** The caller's name for the model, which the response repeats. Defaults to the id. */
  name: z.string().optional(),
  /** The upstreams that may serve the model, in the order in which they are tried. Defaults to the catalog's. */
  upstreams: z.array(callUpstream).optional(),
  /** Output tokens per choice that the hold covers. */
  outputCap: z.int().nonnegative(),
  /** Set if the caller set no cap, so that `outputCap` is the model's own maximum. */
  isCapDefault: z.literal(true).optional(),
  /**
   * Set for a call with files, whose content is known only when they are read: the input tokens that the hold covers,
   * and the field of a file.
   */
  fileBound: z.object({ tokens: z.int().nonnegative(), param: z.string() }).optional(),
});
export type CallTarget = z.infer<typeof target>;

/** The payload of a paid call. The caller's body is opaque here: it is checked in the API and parsed in the worker. */
export const paidCall = z.object({
  v: z.literal(1),
  /** The first model. */
  ...target.shape,
  /** The models to try after it. */
  fallbacks: z.array(target).optional(),
  requestId: z.string(),
  account: z.string(),
  keyId: z.string(),
  tier: z.enum(["standard", "elite"]),
  endpoint: z.string(),
  stream: z.boolean(),
  /** The caller's format. Set for calls with a text response. */
  format: z.enum(formats).optional(),
  /**
   * `array`: a stream in Gemini's format is one JSON array. `completions`: the chat request came from a prompt, and its
   * response is plain text.
   */
  framing: z.enum(["array", "completions"]).optional(),
  /** The caller's headers that providers of the format read. */
  headers: z.record(z.string(), z.string()).optional(),
  /** Set if marks of the prompt cache may be added. The hold covers what they write. */
  cacheMarks: z.literal("auto").optional(),
  /** Set if the body refers to uploads. */
  uploads: z.literal(true).optional(),
  /** Set if the call is free in any case: there is no hold and no ledger entry. */
  isFree: z.literal(true).optional(),
  /** Nano-USD, as a decimal string. */
  held: z.string().regex(/^\d+$/),
  /** The lease from which the hold was drawn. Undefined if the call has its own hold. */
  lease: z.string().optional(),
  /** Input tokens, used for a provider that reports no usage. */
  inputEstimate: z.int().nonnegative(),
  /** The API instance that receives the frames. */
  replyTo: z.string(),
  /** The call's number at that instance. Undefined if the response is a stream, is stored, or costs nothing. */
  replyNumber: z.int().nonnegative().optional(),
  /** Unix milliseconds. */
  acceptedAt: z.number(),
  deadlineAt: z.number(),
  /** The base address of links to generated files. */
  publicUrl: z.string().optional(),
  /** The `Idempotency-Key` that leads to the stored response. Such a call continues when its caller disconnects. */
  idempotencyKeyId: z.string().optional(),
  /**
   * Set for a job of `/v1/jobs`, which is stored with its response and continues without its caller. `runMs`: how long it
   * may run once a worker has started it, within its deadline. `cancelAt`: Unix milliseconds at which it is cancelled, as by
   * its caller, if it has begun.
   */
  detached: z
    .object({
      queuedUntil: z.number(),
      runMs: z.number(),
      cancelAt: z.number().optional(),
      /** The API instance waits for the response. */
      isAwaited: z.literal(true).optional(),
      /** A response in the background. Its events are kept if they can be streamed. */
      background: z.object({ keepsEvents: z.boolean() }).optional(),
    })
    .optional(),
  /**
   * Set for a line of a batch, which is stored with its answer. `queuedUntil`: Unix milliseconds until which it may wait for
   * a worker. `runMs`: how long it may run once a worker has it. `upstream`: the one in whose own batch it runs,
   * with what discount.
   */
  batch: z
    .object({
      id: z.string(),
      line: z.string(),
      queuedUntil: z.number(),
      runMs: z.number(),
      upstream: z.string().optional(),
      discountBps: z.int().optional(),
    })
    .optional(),
  /** The caller's id of the conversation, the caller's id of its user, and the caller's tags, for the ledger. */
  sessionId: z.string().optional(),
  user: z.string().optional(),
  tags: z.array(z.string()).optional(),
  /** The stored response that the body's input continues, as the caller named it. */
  previousResponseId: z.string().optional(),
  /** W3C Trace Context of the call in the API. Undefined if the call is not traced. */
  traceparent: z.string().optional(),
  /** The mint for the buyback of its charge, chosen by the account or the caller. */
  buybackToken: z.string().optional(),
  body: z.union([
    z.object({ json: z.string() }),
    z.object({ stored: z.literal(true), bytes: z.int().nonnegative().default(0) }),
  ]),
});
export type PaidCall = z.infer<typeof paidCall>;

const group = z.object({ v: z.literal(1), calls: z.array(z.unknown()) });

/** The payload of a queue job whose call is stored in MongoDB, with its own payload and body. */
export const detachedCallJob = z.object({
  v: z.literal(1),
  detachedCall: z.object({ account: z.string(), requestId: z.string() }),
});
export type DetachedCallJob = z.infer<typeof detachedCallJob>;

/** Returns the unparsed payloads of a job, so that an invalid call does not affect the others of its group. */
export function payloadsOf(data: unknown): readonly unknown[] {
  const { data: parsed } = group.safeParse(data);
  return parsed ? parsed.calls : [data];
}

/** The minimum that is needed to respond to a call whose payload cannot be parsed. */
export const replyAddress = paidCall.pick({ requestId: true, replyTo: true });

/** The payload of a queue job that sends the due deliveries of one receiver of webhooks. */
const webhookReceiver = z.object({ v: z.literal(1), account: z.string(), receiver: z.string() });

/** The payload of a queue job that checks a credential, which MongoDB has, sealed. */
const providerKeyCheck = z.object({ v: z.literal(1), account: z.string(), check: z.string() });

const noPayload = z.object({ v: z.literal(1) });

/** All jobs; those with `everyMs` are scheduled. A job without a handler in the workers does not compile. */
export const jobCatalog = {
  chat: { pool: "chat", payload: paidCall },
  count: { pool: "chat", payload: paidCall },
  embeddings: { pool: "embeddings", payload: paidCall },
  moderation: { pool: "embeddings", payload: paidCall },
  rerank: { pool: "embeddings", payload: paidCall },
  image: { pool: "image", payload: paidCall },
  media: { pool: "media", payload: paidCall },
  "send-webhooks": { pool: "webhooks", payload: webhookReceiver },
  "check-provider-key": { pool: "webhooks", payload: providerKeyCheck },
  "rewrap-secrets": { pool: "webhooks", payload: noPayload },
  "validate-batches": { pool: "batches", payload: noPayload, everyMs: 1_000 },
  "run-provider-batches": { pool: "batches", payload: noPayload, everyMs: 2_000 },
  "enqueue-webhooks": { pool: "maintenance", payload: noPayload, everyMs: 2_000 },
  "sweep-holds": { pool: "maintenance", payload: noPayload, everyMs: 15_000 },
  "refund-undelivered": { pool: "maintenance", payload: noPayload, everyMs: 5_000 },
  "apply-late-costs": { pool: "maintenance", payload: noPayload, everyMs: 300_000 },
  "checkpoint-ledger": { pool: "maintenance", payload: noPayload, everyMs: 30_000 },
  "check-ledger": { pool: "maintenance", payload: noPayload, everyMs: 30_000 },
  "count-stored": { pool: "maintenance", payload: noPayload, everyMs: 15_000 },
  "sum-usage": { pool: "maintenance", payload: noPayload, everyMs: 60_000 },
  "credit-fees": { pool: "maintenance", payload: noPayload, everyMs: 3_600_000 },
  "watch-balances": { pool: "maintenance", payload: noPayload, everyMs: 15_000 },
  "watch-budgets": { pool: "maintenance", payload: noPayload, everyMs: 30_000 },
  "watch-key-expiry": { pool: "maintenance", payload: noPayload, everyMs: 600_000 },
  "watch-provider-keys": { pool: "maintenance", payload: noPayload, everyMs: 15_000 },
  "watch-upstreams": { pool: "maintenance", payload: noPayload, everyMs: 10_000 },
  "archive-ledger": { pool: "maintenance", payload: noPayload, everyMs: 3_600_000 },
  "restore-archives": { pool: "maintenance", payload: noPayload, everyMs: 5_000 },
  "expire-files": { pool: "maintenance", payload: noPayload, everyMs: 60_000 },
  "end-detached-calls": { pool: "maintenance", payload: noPayload, everyMs: 5_000 },
  "expire-bodies": { pool: "maintenance", payload: noPayload, everyMs: 3_600_000 },
  "reconcile-payments": { pool: "maintenance", payload: noPayload, everyMs: 5_000 },
  "credit-topups": { pool: "maintenance", payload: noPayload, everyMs: 5_000 },
  "tidy-payments": { pool: "maintenance", payload: noPayload, everyMs: 3_600_000 },
  "gather-buybacks": { pool: "maintenance", payload: noPayload, everyMs: 60_000 },
  "execute-buybacks": { pool: "maintenance", payload: noPayload, everyMs: 30_000 },
} as const satisfies Record<
  string,
  | { pool: CallPool; payload: typeof paidCall }
  | { pool: "webhooks"; payload: typeof webhookReceiver | typeof providerKeyCheck | typeof noPayload }
  | { pool: "batches" | "maintenance"; payload: typeof noPayload; everyMs: number }
>;

export type JobName = keyof typeof jobCatalog;
export type JobPayload<Name extends JobName> = z.infer<(typeof jobCatalog)[Name]["payload"]>;
export type PaidJobName = {
  [Name in JobName]: JobPayload<Name> extends PaidCall ? Name : never;
}[JobName];
