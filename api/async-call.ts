import type { Request, Response } from "express";
import { z } from "zod";
import type { DetachedCalls, JobView, NewJob } from "#detached-calls";
import { invalidValue, noCapacity, rateLimited } from "#errors";
import type { ParsedCall } from "#formats";
import type { Claim } from "#idempotency";
import type { PaidCall, Pool } from "#jobs";
import { isObject, type JsonObject } from "#json";
import type { Uses } from "#platform/uses";
import type { Webhooks } from "#webhooks";
import type { TargetDeps } from "./admission/targets.ts";
import { answerBackground, type BackgroundDeps, checkBackground } from "./background/accept.ts";
import { isBackground } from "./background/response-text.ts";
import type { CheckWebhookUrl } from "./check-webhook-url.ts";
import { markReplayed } from "./idempotency.ts";
import type { PaidRoute } from "./paid-route.ts";
import { answerAccepted } from "./routes/job-object.ts";

/** Calls whose callers do not wait for the answer: jobs, and responses in the background (docs/api/jobs.md). */

export interface CallbackDeps {
  readonly webhooks: Pick<Webhooks, "endpoints">;
  readonly checkWebhookUrl: CheckWebhookUrl;
}

export interface AsyncDeps extends Uses<"clock">, BackgroundDeps, CallbackDeps {
  readonly detachedCalls: DetachedCalls;
  readonly registry: TargetDeps["registry"];
  readonly callTimeoutMs: number;
  readonly asyncLimits: { readonly backlog: number; readonly jobsPerAccount: number; readonly queueMs: number };
}

/** The wishes of a caller who asked with `Prefer: respond-async`, `?async=1` or `background: true`. */
export interface AsyncRequest {
  readonly isPreferred: boolean;
  /** The job is a response in the background. */
  readonly inBackground: boolean;
  /** How long the caller waits for the answer before it gets the job. */
  readonly waitMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  /** `x-xm-webhook`: who receives the event of its end. */
  readonly webhook?: string;
  /** The call is cancelled this long after it was accepted, or expires if it has not begun. */
  readonly cancelAfterMs?: number;
}

const maxWaitSeconds = 60;
const maxCancelSeconds = 86_400;
const cancelHeader = "x-xm-cancel-after";
export const webhookHeader = "x-xm-webhook";
/** Headers that ask for something of a job. A synchronous call must not ignore them silently. */
const ofJobs = [webhookHeader, cancelHeader];
const maxMetadataBytes = 8 * 1024;
const maxPairs = 16;

export const metadataShape = z
  .record(z.string().min(1).max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= maxPairs, `has more than ${maxPairs} pairs`);

/** Returns true if the caller asks for a job. Throws 400. */
export function asksForJob(req: Request): boolean {
  const asked = req.query["async"] ?? "0";
  if (typeof asked !== "string" || !["0", "1", "false", "true"].includes(asked))
    throw invalidValue("async", "async: must be 1 or 0.");
  return ["1", "true"].includes(asked) || preferencesOf(req.get("prefer") ?? "").has("respond-async");
}

/** Returns undefined if the caller waits for the answer. Unknown preferences are ignored (RFC 7240). Throws 400. */
export function asyncRequestOf(
  req: Request,
  { format, isFree }: Pick<PaidRoute, "format" | "isFree">,
  { stream, background }: ParsedCall,
  hasKey: boolean,
): AsyncRequest | undefined {
  const isPreferred = asksForJob(req);
  if (isFree || (!isPreferred && !background)) {
    const ignored = ofJobs.find((name) => req.get(name) !== undefined);
    if (ignored === undefined) return undefined;
    throw invalidValue(ignored, `${ignored}: only for asynchronous calls; add 'Prefer: respond-async'.`);
  }
  const webhook = req.get(webhookHeader);
  const inBackground = format === "responses";
  if (stream && !inBackground) throw invalidValue("stream", "stream: an asynchronous call has no stream.");
  const param = background ? "background" : "prefer";
  if (!hasKey) throw invalidValue(param, `${param}: a call that is paid by x402 cannot be asynchronous.`);
  const cancelAfter = req.get(cancelHeader);
  const wait = preferencesOf(req.get("prefer") ?? "").get("wait") ?? "0";
  const waitMs = 1_000 * secondsOf("prefer", "prefer: wait", wait, 0, maxWaitSeconds);
  return {
    isPreferred,
    inBackground,
    // Its response is polled, or streamed.
    waitMs: inBackground ? 0 : waitMs,
    metadata: metadataOf(req.get("x-xm-metadata")),
    ...(webhook !== undefined && { webhook }),
    ...(cancelAfter !== undefined && {
      cancelAfterMs: 1_000 * secondsOf(cancelHeader, cancelHeader, cancelAfter, 1, maxCancelSeconds),
    }),
  };
}

/** `respond-async, wait=20` by name. The first value of a name counts. */
function preferencesOf(header: string): ReadonlyMap<string, string> {
  const preferences = new Map<string, string>();
  for (const preference of header.split(",")) {
    const [name = "", value = ""] = (preference.split(";")[0] ?? "").split("=");
    const key = name.trim().toLowerCase();
    if (!preferences.has(key)) preferences.set(key, value.trim().replaceAll('"', ""));
  }
  return preferences;
}

function secondsOf(header: string, name: string, text: string, min: number, max: number): number {
  const seconds = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN;
  if (seconds >= min && seconds <= max) return seconds;
  throw invalidValue(header, `${name} must be a whole number of seconds from ${min || 1} to ${max}.`);
}

function metadataOf(text: string | undefined): Readonly<Record<string, string>> {
  if (text === undefined) return {};
  const name = "x-xm-metadata";
  if (text.length > maxMetadataBytes) throw invalidValue(name, `${name} is longer than ${maxMetadataBytes} bytes.`);
  // Node decodes headers as Latin-1, so other characters are not the ones that the caller sent.
  if (/[^\x20-\x7e]/.test(text)) throw invalidValue(name, `${name} must be ASCII; write other characters as \\uXXXX.`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw invalidValue(name, `${name} is not JSON.`);
  }
  if (isObject(value) && Object.hasOwn(value, "__proto__"))
    throw invalidValue(name, `${name}: '__proto__' cannot be a name.`);
  const parsed = metadataShape.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw invalidValue(name, `${name}: ${[issue?.path.join("."), issue?.message].filter(Boolean).join(": ")}`);
}

interface JobRequest {
  readonly pool: Pool;
  readonly account: string;
  /** Unix milliseconds. */
  readonly acceptedAt: number;
  readonly wanted: AsyncRequest;
  readonly stream: boolean;
  /** The body of the request. */
  readonly request: JsonObject;
}

interface AdmittedJob {
  /** Unix milliseconds. */
  readonly deadlineAt: number;
  readonly waitMs: number;
  readonly payload: NonNullable<PaidCall["detached"]>;
  readonly stored: Pick<NewJob, "metadata" | "queuedUntil" | "publicUrl" | "callback">;
}

/** The URL or the endpoint that `x-xm-webhook` names. Throws 400. */
export async function callbackOf(
  { webhooks, checkWebhookUrl }: CallbackDeps,
  account: string,
  named: string,
): Promise<string> {
  const refused = (why: string) => invalidValue(webhookHeader, `${webhookHeader}: ${why}`);
  if (named.startsWith("we_")) {
    if (await webhooks.endpoints.exists(account, named)) return named;
    throw refused("this account has no such webhook endpoint.");
  }
  const url = await checkWebhookUrl(named, webhookHeader);
  if (await webhooks.endpoints.hasDefaultSecret(account)) return url;
  throw refused("this account has no secret to sign it; create one by POST /v1/webhooks/default/rotate-secret.");
}

/** Checks the limits of jobs, in addition to those of every call. Throws 400, 429, 503. */
export async function admitJob(
  deps: AsyncDeps,
  { pool, account, acceptedAt, wanted, stream, request }: JobRequest,
): Promise<AdmittedJob> {
  const { detachedCalls, registry, callTimeoutMs, asyncLimits, publicUrl } = deps;
  if (registry.detachedBacklog(pool) >= asyncLimits.backlog) throw noCapacity("Too many jobs wait right now.", 60);
  const { jobsPerAccount, queueMs } = asyncLimits;
  if ((await detachedCalls.countOpen(account, jobsPerAccount)) >= jobsPerAccount)
    throw rateLimited(`The account has ${jobsPerAccount} jobs that have not ended.`, 10);
  const callback = wanted.webhook === undefined ? undefined : await callbackOf(deps, account, wanted.webhook);
  const { waitMs, metadata, cancelAfterMs } = wanted;
  const queuedUntil = acceptedAt + Math.min(queueMs, cancelAfterMs ?? queueMs);
  const cancelling = cancelAfterMs === undefined ? {} : { cancelAt: acceptedAt + cancelAfterMs };
  if (wanted.inBackground) await checkBackground(deps, { account, request, stream });
  const background = wanted.inBackground ? { background: { keepsEvents: stream } } : {};
  const isAwaited = waitMs > 0 ? { isAwaited: true as const } : {};
  return {
    deadlineAt: queuedUntil + callTimeoutMs,
    waitMs,
    payload: { queuedUntil, runMs: callTimeoutMs, ...cancelling, ...isAwaited, ...background },
    stored: { metadata, queuedUntil, publicUrl: publicUrl(), callback },
  };
}

/** Answers with the job that holds the `Idempotency-Key`. Returns false if a call that is not a job holds it. */
export async function acceptAgain(
  deps: AsyncDeps,
  res: Response,
  accepted: Accepted,
  { requestId }: Exclude<Claim, { kind: "new" }>,
): Promise<boolean> {
  const job = await deps.detachedCalls.find(accepted.account, requestId);
  if (!job) return false;
  markReplayed(res, requestId);
  accept(deps, res, accepted, job);
  return true;
}

interface Accepted {
  readonly account: string;
  readonly stream: boolean;
  readonly isPreferred: boolean;
}

/** Answers with a job that runs, or with a response that runs in the background. */
export function accept(deps: AsyncDeps, res: Response, accepted: Accepted, job: JobView): void {
  if (isBackground(job)) answerBackground(deps, res, job, accepted);
  else answerAccepted(res, job, deps.clock.now());
}
