import { Router } from "express";
import { z } from "zod";
import { callStatuses, isEnded, type JobView, jobFailed, renderJob, requestIdOf } from "#detached-calls";
import { invalidValue, jobExpired, ServiceError } from "#errors";
import { chatCodec } from "#formats";
import { jobCatalog } from "#jobs";
import type { Caller } from "#keys";
import { formatUsd } from "#money";
import { authenticate } from "../admission/authenticate.ts";
import { answerError, answerParts } from "../http/answer.ts";
import { databaseUnavailable, methodNotAllowed } from "../http/errors.ts";
import { fields, tag } from "../http/fields.ts";
import { localsOf } from "../http/headers.ts";
import { wholeNumber } from "../http/input.ts";
import { costHeaders } from "../http/openapi/headers.ts";
import { binary, json, operation } from "../http/openapi/operation.ts";
import { found, listOf, pageQuery, readPage, text } from "../http/page.ts";
import type { PaidRoute } from "../paid-route.ts";
import { type AccountDeps, route } from "./account/route.ts";
import { cancelJob, deleteJob, isExpired, waitForEnd } from "./job-actions.ts";
import { answerAccepted, jobObject, retryAfterOf } from "./job-object.ts";

/** Jobs: calls whose callers do not wait (docs/api/jobs.md). A key sees all jobs of its account. */

/** Each place in a queue is a command of Redis, so a list shows those of its first jobs only. */
const maxPlaces = 50;

/** Clients of Gemini's format may send their key here. */
const keyQuery = { key: z.string().optional().describe("The API key, as in Gemini's format") };

const params = { id: z.string().meta({ example: "job_2kT9vQ4mXw7pLr3sZb8n" }) };

async function findJob({ detachedCalls }: Pick<AccountDeps, "detachedCalls">, { account }: Caller, id: string) {
  const requestId = requestIdOf(id);
  return found(requestId === undefined ? undefined : await detachedCalls.find(account, requestId), "job");
}

/** Adds what is known of a job in addition to its document. */
async function shown(
  { queues, detachedCalls, clock }: AccountDeps,
  account: string,
  view: JobView,
  include?: "result",
) {
  const { requestId, status, job } = view;
  const place = status === "queued" ? await queues.placeOf(jobCatalog[job].pool, account, requestId) : undefined;
  const queuePosition = typeof place === "number" ? place : undefined;
  const hasResult = include && status === "completed" && !isExpired(view, clock.now());
  return renderJob(view, {
    queuePosition,
    result: hasResult ? await detachedCalls.result(account, requestId) : undefined,
  });
}

export const jobRoutes = [
  route({
    method: "get",
    path: "/v1/jobs",
    operationId: "listJobs",
    summary: "The account's jobs, newest first",
    query: { status: z.enum(callStatuses).optional(), endpoint: text.optional(), ...pageQuery, ...keyQuery },
    answers: { 200: "The jobs" },
    answer: listOf(jobObject).meta({ id: "JobList" }),
    async handle(deps, { who: { account }, query: { status, endpoint, limit, after } }) {
      const last = after === undefined ? undefined : requestIdOf(after);
      if (after !== undefined && last === undefined)
        throw invalidValue("after", `after: '${after}' is not a job's id.`);
      return readPage({ limit, after: last }, async (each) => {
        const views = await deps.detachedCalls.list(account, each, { status, endpoint });
        const first = await Promise.all(views.slice(0, maxPlaces).map((view) => shown(deps, account, view)));
        return [...first, ...views.slice(maxPlaces).map((view) => renderJob(view))];
      });
    },
  }),
  route({
    method: "get",
    path: "/v1/jobs/{id}",
    operationId: "getJob",
    summary: "One job",
    params,
    query: {
      wait: wholeNumber(z.int().min(1).max(60)).optional().describe("Seconds to wait for the end of the job"),
      include: z.enum(["result"]).optional(),
      ...keyQuery,
    },
    answers: { 200: "The job" },
    answer: jobObject,
    async handle(deps, { who: caller, params: { id }, query: { wait = 0, include }, res }) {
      const waiting = { account: caller.account, res, waitMs: wait * 1_000 };
      const view = await waitForEnd(deps, waiting, () => findJob(deps, caller, id));
      const retryAfter = retryAfterOf(view, deps.clock.now());
      if (retryAfter !== undefined) res.set("retry-after", String(retryAfter));
      return shown(deps, caller.account, view, include);
    },
  }),
  route({
    method: "post",
    path: "/v1/jobs/{id}/cancel",
    operationId: "cancelJob",
    summary: "Cancel a job",
    description:
      "A job that waits is cancelled and costs nothing. A job that runs is cancelled if its provider can be stopped; otherwise it completes. A job that has ended stays as it is.",
    params,
    answers: { 200: "The job" },
    answer: jobObject,
    async handle(deps, { who: caller, params: { id } }) {
      await cancelJob(deps, caller.account, await findJob(deps, caller, id));
      return shown(deps, caller.account, await findJob(deps, caller, id));
    },
  }),
  route({
    method: "delete",
    path: "/v1/jobs/{id}",
    operationId: "deleteJob",
    summary: "Delete a job that has ended, with its result",
    params,
    answers: { 200: "The job was deleted" },
    answer: fields({ id: z.string(), object: tag("job"), deleted: z.literal(true) }).meta({ id: "DeletedJob" }),
    errors: [409],
    async handle(deps, { who: caller, params: { id } }) {
      await deleteJob(deps, caller.account, await findJob(deps, caller, id));
      return { id, deleted: true as const };
    },
  }),
];

/** Described like the other routes of jobs, but it answers in every format. */
export const jobResultOperation = operation("getJobResult", "The answer of the synchronous call", {
  params: { path: z.object(params) },
  responses: {
    "200": {
      description: "The answer, in the format of the call",
      headers: costHeaders,
      content: { ...json(z.unknown()), "audio/*": { schema: binary } },
    },
  },
  errors: [401, 404, 409, 410, 429, 500, 502, 503, 504],
});

/** `GET /v1/jobs/{id}/result`: answers as the synchronous call would have. */
export function jobResultRoutes(deps: AccountDeps, routeOf: (endpoint: string) => PaidRoute | undefined): Router {
  const router = Router();
  router.get("/v1/jobs/:id/result", async (req, res) => {
    const caller = await authenticate(deps.keys, req, "any");
    await deps.keys.countJobRequest(caller, localsOf(res).requestId);
    const view = await findJob(deps, caller, req.params.id);
    const { requestId, status, endpoint, costNanoUsd, answerFormat: format } = view;
    const paid = routeOf(endpoint);
    res.set({ "x-request-id": requestId, "cache-control": "no-store" });
    if (paid?.format === "messages") res.set("request-id", requestId);
    if (!isEnded(view)) return answerAccepted(res, view, deps.clock.now());
    if (isExpired(view, deps.clock.now())) throw jobExpired();
    if (status !== "completed" || !paid) {
      const error = new ServiceError(view.error ?? jobFailed().fields());
      return answerError(res, error, (paid?.codec ?? chatCodec).error(error, requestId));
    }
    const answer = await deps.detachedCalls.answer(caller.account, requestId, (textBytes) =>
      deps.unread.reserve(res, caller.account, textBytes),
    );
    if (!answer) throw jobExpired();
    res.set({ ...answer.headers, "x-xm-cost-usd": formatUsd(costNanoUsd) });
    if (paid.answer) return paid.answer(deps, { res, text: answer.text, format });
    answerParts(res.status(200), [answer.text]);
  });
  router.all("/v1/jobs/:id/result", methodNotAllowed("GET", "HEAD"));
  router.use(databaseUnavailable);
  return router;
}
