import { z } from "zod";
import { formats } from "#formats";

/** One queue each, so that operators scale them apart. */
export const pools = ["chat", "embeddings", "image", "media", "maintenance"] as const;
export type Pool = (typeof pools)[number];
export const isPool = (name: string | undefined): name is Pool => (pools as readonly string[]).includes(name ?? "");

/** What a paid call carries to a worker. The caller's body is opaque here: checked in the API, parsed in the worker. */
export const paidCall = z.object({
  v: z.literal(1),
  requestId: z.string(),
  account: z.string(),
  keyId: z.string(),
  tier: z.enum(["standard", "elite"]),
  endpoint: z.string(),
  model: z.string(),
  stream: z.boolean(),
  /** What the caller speaks, of a call that is answered in text. */
  format: z.enum(formats).optional(),
  /** Of a stream in Gemini's format: one JSON array. */
  framing: z.literal("array").optional(),
  /** Of the caller's headers those that the provider of the format reads. */
  headers: z.record(z.string(), z.string()).optional(),
  /** The body names uploads. */
  uploads: z.literal(true).optional(),
  /** Nano-USD held for this call, as a decimal string. */
  held: z.string().regex(/^\d+$/),
  /** Output tokens for each choice that the hold covers. */
  outputCap: z.int().nonnegative(),
  /** Input tokens by estimate, for a provider that reports none. */
  inputEstimate: z.int().nonnegative(),
  /** Of a call with files: input tokens that the hold covers, and the field that names a file. What is in one is known when it is read. */
  fileBound: z.object({ tokens: z.int().nonnegative(), param: z.string() }).optional(),
  /** The API instance that waits for the frames. */
  replyTo: z.string(),
  /** Unix milliseconds. */
  acceptedAt: z.number(),
  deadlineAt: z.number(),
  /** What links to generated files begin with. */
  publicUrl: z.string().optional(),
  /** The `Idempotency-Key` under which the answer is kept: nobody's leaving ends such a call. */
  idempotencyKeyId: z.string().optional(),
  /** The mint that the buyback of its charge goes to: the account's, or the caller's choice. */
  buybackToken: z.string().optional(),
  body: z.union([
    z.object({ json: z.string() }),
    z.object({ stored: z.literal(true), bytes: z.int().nonnegative().default(0) }),
  ]),
});
export type PaidCall = z.infer<typeof paidCall>;

/** The payload, if that is what it is. */
export const isPaidCall = (data: unknown): PaidCall | undefined => paidCall.safeParse(data).data;

const nothing = z.object({ v: z.literal(1) });

interface JobDefinition {
  readonly pool: Pool;
  readonly payload: z.ZodType;
  /** A scheduled job: how often it runs. */
  readonly everyMs?: number;
}

/** Every job there is. `handlers` in the workers is typed from it: a job without a handler does not compile. */
export const jobCatalog = {
  chat: { pool: "chat", payload: paidCall },
  count: { pool: "chat", payload: paidCall },
  embeddings: { pool: "embeddings", payload: paidCall },
  image: { pool: "image", payload: paidCall },
  media: { pool: "media", payload: paidCall },
  "sweep-holds": { pool: "maintenance", payload: nothing, everyMs: 30_000 },
  "checkpoint-ledger": { pool: "maintenance", payload: nothing, everyMs: 30_000 },
  "expire-files": { pool: "maintenance", payload: nothing, everyMs: 60_000 },
  "expire-bodies": { pool: "maintenance", payload: nothing, everyMs: 3_600_000 },
  "reconcile-payments": { pool: "maintenance", payload: nothing, everyMs: 5_000 },
  "tidy-payments": { pool: "maintenance", payload: nothing, everyMs: 3_600_000 },
  "gather-buybacks": { pool: "maintenance", payload: nothing, everyMs: 60_000 },
  "execute-buybacks": { pool: "maintenance", payload: nothing, everyMs: 30_000 },
} as const satisfies Record<string, JobDefinition>;

export type JobName = keyof typeof jobCatalog;
export type JobPayload<Name extends JobName> = z.infer<(typeof jobCatalog)[Name]["payload"]>;
export type PaidJobName = {
  [Name in JobName]: JobPayload<Name> extends PaidCall ? Name : never;
}[JobName];
