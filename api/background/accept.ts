import type { Response } from "express";
import type { BackgroundResponse } from "#detached-calls";
import { rateLimited } from "#errors";
import { newResponse, responseIdOf } from "#formats";
import type { JsonObject } from "#json";
import type { Background } from "#platform/concurrency/background";
import type { StoredResponses } from "#stored-responses";
import { answerJson } from "../http/answer.ts";
import { localsOf } from "../http/headers.ts";
import type { ResponseReaders } from "./readers.ts";
import { type BackgroundView, statusText } from "./response-text.ts";

/** Responses in the background (docs/api/background.md): their admission, and the answer to their request. */

export interface BackgroundDeps {
  readonly responses: StoredResponses;
  readonly responseReaders: ResponseReaders;
  readonly background: Background;
  readonly publicUrl: () => string;
}

interface Accepted {
  readonly requestId: string;
  /** The caller asked for a stream. */
  readonly keepsEvents: boolean;
  /** Unix milliseconds. */
  readonly acceptedAt: number;
  /** The caller's name for the model. */
  readonly model: string;
  readonly previousResponseId: string | undefined;
}

/** How long a response with `store: false` is kept after its end. */
const shortLifeMs = 600_000;
const pollSeconds = 2;
/** Longer settings are shown only in the final response, so that polling is cheap. */
const maxSettingUnits = 16 * 1024;
const isShort = (value: unknown): boolean =>
  (typeof value === "string" ? value.length : JSON.stringify(value).length) <= maxSettingUnits;

const isStored = (request: JsonObject): boolean => request["store"] !== false;

/** Checks the limits of responses in the background, in addition to those of jobs. Throws 429, 503. */
export async function checkBackground(
  { responses, responseReaders }: BackgroundDeps,
  { account, request, stream }: { account: string; request: JsonObject; stream: boolean },
): Promise<void> {
  if (isStored(request) && !(await responses.hasRoom(account)))
    throw rateLimited("The account stores as many responses as it may: delete some, or set store to false.", 60);
  if (stream) responseReaders.assertRoom(account);
}

/** A response as it is accepted. */
export function newBackground(
  request: JsonObject,
  { requestId, keepsEvents, acceptedAt, ...identity }: Accepted,
): BackgroundResponse {
  const { input: _, ...settings } = request;
  const short = Object.entries(settings).filter(([, value]) => isShort(value));
  const created = Math.floor(acceptedAt / 1_000);
  const ours = { ...identity, id: responseIdOf(requestId), created, background: true as const };
  return {
    response: JSON.stringify({ ...newResponse(Object.fromEntries(short), ours), status: "queued" }),
    keepsEvents,
    ...(!isStored(request) && { keptMs: shortLifeMs }),
  };
}

/** Answers the request for a response in the background: 200 with the response as it is, or its stream from the start. */
export function answerBackground(
  { responseReaders, background, publicUrl }: BackgroundDeps,
  res: Response,
  job: BackgroundView,
  { stream, isPreferred, account }: { stream: boolean; isPreferred: boolean; account: string },
): void {
  res.status(200).set({
    location: `${publicUrl()}/v1/responses/${responseIdOf(job.requestId)}`,
    ...(isPreferred && { "preference-applied": "respond-async" }),
  });
  if (stream) {
    const streaming = responseReaders.stream(res, { account, view: job, after: -1 }).catch((error: unknown) => {
      res.destroy();
      throw error;
    });
    return background.run("a response could not be streamed", streaming, { requestId: localsOf(res).requestId });
  }
  res.set("retry-after", String(pollSeconds));
  answerJson(res, statusText(job));
}
