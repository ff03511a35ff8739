import type { Request, Response } from "express";
import type { Model } from "#catalog";
import type { ServiceError } from "#errors";
import type { FileSizes, Files, TemporaryFile } from "#files";
import type { Codec, Format, JsonLimits } from "#formats";
import type { PaidJobName } from "#jobs";
import type { Caller } from "#keys";
import type { ByteBudget } from "#platform/byte-budget";
import type { Uses } from "#platform/uses";
import type { BodyReader, JsonBody } from "./http/body.ts";
import { localsOf } from "./http/headers.ts";

export interface RouteBodyDeps extends Uses<"clock"> {
  readonly readBody: BodyReader;
  readonly files: Files;
  readonly spoolBudget: ByteBudget;
}

export interface RouteRequest {
  readonly req: Request;
  readonly res: Response;
  readonly caller: Caller;
  /**
   * Resolves to the error that would refuse the call, if any. Its files are not stored yet: `files` has their sizes under
   * the placeholder ids in its JSON.
   */
  readonly refusalOf: (body: RouteBody, files: FileSizes) => Promise<ServiceError | undefined>;
}

/** The JSON of a job, as a route read it from the request. */
export interface RouteBody extends Pick<JsonBody, "bytes" | "text" | "value"> {
  /** Returns the memory of the body to the budget. Idempotent. */
  release(): void;
  /** Compared instead of the text to tell whether two requests are the same. */
  readonly identity?: string;
  /** Deletes the files that the job reads, once the call has ended. */
  readonly cleanUp?: () => Promise<void>;
  /** Thrown unless an earlier answer is stored under the `Idempotency-Key`. No files were stored for the call. */
  readonly refusal?: ServiceError;
}

/** The body for a route that builds the JSON of its job itself. */
export function jobBody(value: object, rest: Pick<RouteBody, "release" | "identity" | "cleanUp">): RouteBody {
  const json = JSON.stringify(value);
  return { ...rest, value, text: json, bytes: Buffer.byteLength(json) };
}

/** The body of a call whose files came with its request. They are stored for this call only; `jsonOf` inserts their ids. */
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
  /** Set for the chat, Messages, Responses and Gemini formats. */
  readonly format?: Format;
  /** `array` is Gemini's stream without `alt=sse`, one JSON array. `completions` is the legacy format, converted to chat. */
  readonly framing?: "array" | "completions";
  /** Replaces the default limits of JSON bodies. */
  readonly jsonLimits?: JsonLimits;
  /** Builds the job's JSON from a body in another shape, such as a form. */
  readonly readBody?: (deps: RouteBodyDeps, request: RouteRequest) => Promise<RouteBody>;
  /** Selects the models that the route accepts. The default is every model of the endpoint. */
  readonly serves?: (model: Model) => boolean;
  /** Resolves when the answer is written; rejects, before its head is sent, with the error to answer. */
  readonly answer?: (deps: { readonly files: Files }, answer: RouteAnswer) => Promise<void>;
  /** Request headers that are forwarded to the provider. */
  readonly passed?: readonly string[];
  /** Free calls have no ledger entry, take no tokens from the key's limit, and ignore an `Idempotency-Key`. */
  readonly isFree?: true;
  /** The model, if the path names it instead of the body. */
  readonly model?: string;
  /** Requests may refer to the account's stored responses. */
  readonly refersToStored?: true;
  /** A call without an `Idempotency-Key` ends after `syncTimeoutMs`, unless it streams. */
  readonly endsAtSyncTimeout?: true;
  /** A call without an API key may be paid for by x402. */
  readonly payable?: true;
  /** Answers may be stored in the response cache. */
  readonly cacheable?: true;
}
