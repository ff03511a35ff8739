import type { Request, Response } from "express";
import type { Model } from "#catalog";
import type { ServiceError } from "#errors";
import type { FileSizes, Files, TemporaryFile } from "#files";
import type { Codec, Format, JsonLimits } from "#formats";
import type { PaidJobName } from "#jobs";
import type { Caller } from "#keys";
import type { ByteBudget } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import type { BodyReader, JsonBody } from "./http/body.ts";
import { localsOf } from "./http/headers.ts";

export interface RouteBodyDeps {
  readonly readBody: BodyReader;
  readonly files: Files;
  readonly spoolBudget: ByteBudget;
  readonly clock: Clock;
}

export interface RouteRequest {
  readonly req: Request;
  readonly res: Response;
  readonly caller: Caller;
  /**
   * What would refuse the call, whose files are not stored yet: `files` has their sizes, by the ids that stand for them in
   * its JSON.
   */
  readonly refusalOf: (body: RouteBody, files: FileSizes) => Promise<ServiceError | undefined>;
}

/** What a route read from a request: the JSON of its job. */
export interface RouteBody extends Pick<JsonBody, "bytes" | "text" | "value"> {
  /** Returns the memory that it takes. Idempotent. */
  release(): void;
  /** Decides whether two requests are the same, where the text does not. */
  readonly identity?: string;
  /** Deletes what the job reads beside the text, when the call has ended. */
  readonly cleanUp?: () => Promise<void>;
  /** Refuses the call, for which nothing was stored, unless it is answered again under its `Idempotency-Key`. */
  readonly refusal?: ServiceError;
}

/** The body of a route that made the JSON of its job itself. */
export function jobBody(value: object, rest: Pick<RouteBody, "release" | "identity" | "cleanUp">): RouteBody {
  const json = JSON.stringify(value);
  return { ...rest, value, text: json, bytes: Buffer.byteLength(json) };
}

/** The body of a call whose files came with its request: they become files of the call alone. `jsonOf` puts in their ids. */
export async function bodyWithFiles(
  { files: { temporary } }: RouteBodyDeps,
  { res, caller, refusalOf }: RouteRequest,
  files: readonly TemporaryFile[],
  jsonOf: (ids: readonly string[]) => object,
  rest: Pick<RouteBody, "release" | "identity">,
): Promise<RouteBody> {
  const sizes = files.map(({ bytes, type: { kind } }, index) => [`upl_${index}`, { bytes, kind }] as const);
  const body = jobBody(jsonOf(sizes.map(([id]) => id)), rest);
  const refusal = await refusalOf(body, new Map(sizes));
  if (refusal) return { ...body, refusal };
  const ids = await temporary.store({ ...caller, requestId: localsOf(res).requestId }, files);
  return jobBody(jsonOf(ids), { ...rest, cleanUp: () => temporary.delete(ids) });
}

/** The answer of a job, for a route that does not answer with the job's JSON. */
export interface RouteAnswer {
  readonly res: Response;
  readonly text: string;
  /** The format that the caller asked for. */
  readonly format: string | undefined;
}

export interface PaidRoute {
  readonly job: PaidJobName;
  readonly endpoint: string;
  readonly codec: Codec;
  /** Of a route that answers in text. */
  readonly format?: Format;
  /** Gemini's stream without `alt=sse`, one JSON array; or the legacy completions, whose format is chat. */
  readonly framing?: "array" | "completions";
  /** Of its JSON, where they are not the usual ones. */
  readonly jsonLimits?: JsonLimits;
  /** Makes the job's JSON of a body in another shape, such as a form. */
  readonly readBody?: (deps: RouteBodyDeps, request: RouteRequest) => Promise<RouteBody>;
  /** The models that it takes, where that is not all of the endpoint's. */
  readonly serves?: (model: Model) => boolean;
  /** Resolves when the answer is written; rejects, before its head is sent, with the error to answer. */
  readonly answer?: (deps: { readonly files: Files }, answer: RouteAnswer) => Promise<void>;
  /** Headers of the caller that are sent on to the provider. */
  readonly passed?: readonly string[];
  /** Costs nothing, so it has no entry in the ledger; counts no tokens, and ignores an `Idempotency-Key`. */
  readonly isFree?: true;
  /** The model, where the path names it and not the body. */
  readonly model?: string;
  /** Its requests may refer to responses that are stored for the account. */
  readonly refersToStored?: true;
  /** Without an `Idempotency-Key` a call ends after `syncTimeoutMs`. */
  readonly endsAtSyncTimeout?: true;
  /** A call without an API key may be paid for by x402. */
  readonly payable?: true;
}
