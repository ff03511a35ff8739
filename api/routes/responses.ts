import { type Request, type RequestHandler, type Response, Router } from "express";
import { z } from "zod";
import { isEnded } from "#detached-calls";
import { conflict, invalidValue, notFound } from "#errors";
import { inputTokensCodec, requestIdOfResponse, responsesCodec, responsesRequest } from "#formats";
import { type JsonObject, text } from "#json";
import type { Keys } from "#keys";
import type { StoredResponses } from "#stored-responses";
import { authenticate } from "../admission/authenticate.ts";
import type { ResponseReaders } from "../background/readers.ts";
import { type BackgroundView, endedResponse, isBackground, statusText } from "../background/response-text.ts";
import { answerParts } from "../http/answer.ts";
import { databaseUnavailable, methodNotAllowed, noSuchRoute } from "../http/errors.ts";
import { localsOf } from "../http/headers.ts";
import { flag, parse, wholeNumber } from "../http/input.ts";
import { refTo, requestOf } from "../http/openapi/formats/index.ts";
import { countHeaders, storedRoutedHeaders } from "../http/openapi/headers.ts";
import { operation, pathId } from "../http/openapi/operation.ts";
import type { Unread } from "../http/unread.ts";
import { cancelJob, deleteJob, isExpired, type JobActionDeps, waitForEnd } from "./job-actions.ts";
import { paid } from "./paid-operation.ts";

interface ResponseDeps extends JobActionDeps {
  readonly keys: Keys;
  readonly responses: StoredResponses;
  readonly responseReaders: ResponseReaders;
  readonly unread: Unread;
}

/** A stored response takes memory for its value beside its text. */
const responseCopies = 2;

const noSuchResponse = () => notFound("response");
const runs = () => conflict("The response has not ended.");

/** Seconds between two polls of a response that runs. */
const pollSeconds = 2;
/** How long a cancellation waits for the worker. */
const cancelMs = 5_000;

const maxEventNumber = 2n ** 63n - 1n;
/** A number of 64 bits. Those that JavaScript cannot tell apart are after every event. */
const eventNumber = z
  .string()
  .regex(/^\d{1,19}$/, "must be a whole number of 64 bits")
  .refine((text) => !/^\d{1,19}$/.test(text) || BigInt(text) <= maxEventNumber, "must be a whole number of 64 bits")
  .transform((text) => Math.min(Number(text), Number.MAX_SAFE_INTEGER))
  .optional();

/** OpenAI's query. `include` and `include_obfuscation` change nothing: everything that is stored is shown. */
const responseQuery = z.looseObject({
  stream: flag.optional().describe("true streams a response in the background that was created with `stream: true`"),
  starting_after: eventNumber.describe(
    "With `stream=true`: the `sequence_number` of the last event that the caller has",
  ),
  include_obfuscation: flag.optional(),
});

/** OpenAI's query for the list of input items. `include` changes nothing: everything that is stored is shown. */
const itemsQuery = z.looseObject({
  limit: wholeNumber(z.int().min(1).max(100)).optional(),
  after: z.string().min(1).max(200).optional().describe("`last_id` of the previous page"),
  order: z.enum(["asc", "desc"]).optional().describe("Default: desc"),
});

const body = requestOf("ResponsesRequest", responsesRequest);
const ofResponse = pathId("resp_...");

export const responses = {
  name: "Responses",
  description:
    "Text in OpenAI's Responses format, with OpenAI's models only, unless the operator enables it for all. Responses are stored for the account for 24 hours unless `store` is false",
  routes: [
    paid(
      {
        endpoint: "/v1/responses",
        job: "chat",
        codec: responsesCodec,
        format: "responses",
        refersToStored: true,
        cacheable: true,
      },
      {
        operationId: "createResponse",
        summary: "Create a response, as JSON or as a stream",
        body,
        okOrEvents: ["The response, or its events", refTo("ResponsesAnswer"), storedRoutedHeaders],
        event: refTo("ResponsesEvent"),
      },
    ),
    paid(
      {
        endpoint: "/v1/responses/input_tokens",
        job: "count",
        codec: inputTokensCodec,
        format: "responses",
        isFree: true,
        refersToStored: true,
      },
      {
        operationId: "countResponseTokens",
        summary: "Count the input tokens of a response; free",
        body,
        ok: [
          "The count",
          z.object({ object: z.literal("response.input_tokens"), input_tokens: z.int() }),
          countHeaders,
        ],
      },
    ),
  ],
  operations: {
    "GET /v1/responses/{id}": operation(
      "getResponse",
      "Get a response of the account, or the stream of one in the background",
      {
        params: { ...ofResponse, query: responseQuery },
        okOrEvents: ["The response, or its events after `starting_after`", refTo("ResponsesAnswer")],
        event: refTo("ResponsesEvent"),
        errors: [400, 401, 404, 409, 429, 500, 503],
      },
    ),
    "POST /v1/responses/{id}/cancel": operation("cancelResponse", "Cancel a response that runs in the background", {
      description:
        "A response that waits costs nothing, one that runs is charged for what there is, which is kept, and one that has ended stays as it is.",
      params: ofResponse,
      ok: ["The response", refTo("ResponsesAnswer")],
      errors: [400, 401, 404, 429, 500, 503],
    }),
    "DELETE /v1/responses/{id}": operation("deleteResponse", "Delete a stored response immediately", {
      params: ofResponse,
      ok: [
        "The response was deleted",
        z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) }),
      ],
      errors: [401, 404, 409, 429, 500, 503],
    }),
    "GET /v1/responses/{id}/input_items": operation(
      "listInputItems",
      "The input of a stored response, including the items that it referred to",
      {
        params: { ...ofResponse, query: itemsQuery },
        ok: ["A page of items", refTo("InputItemList")],
        errors: [400, 401, 404, 409, 429, 500, 503],
      },
    ),
  },
};

/** The responses of an account, stored or in the background, mounted at `/v1/responses`. */
export function responsesRoutes(deps: ResponseDeps): Router {
  const { keys, responses: stored, responseReaders, detachedCalls, unread, clock } = deps;

  interface Call {
    readonly req: Request<{ id: string }>;
    readonly res: Response;
    readonly id: string;
    readonly account: string;
    /** Reserves memory for a response. */
    readonly reserve: (textBytes: number) => void;
    /** Set if the response runs or ran in the background. */
    readonly view: BackgroundView | undefined;
  }

  /** `handle` resolves to the JSON to answer, unless it has answered. */
  const handler =
    (handle: (call: Call) => Promise<object | undefined>): RequestHandler<{ id: string }> =>
    async (req, res) => {
      const caller = await authenticate(keys, req);
      if (res.closed) return;
      const { account } = caller;
      const { id } = req.params;
      const reserve = (textBytes: number) => unread.reserve(res, account, responseCopies * textBytes);
      const requestId = requestIdOfResponse(id);
      // Callers poll these.
      if (requestId !== undefined) await keys.countJobRequest(caller, localsOf(res).requestId);
      const view = requestId === undefined ? undefined : await findView(account, requestId);
      const answer = await handle({ req, res, id, account, reserve, view });
      if (answer) res.json(answer);
    };

  async function findView(account: string, requestId: string): Promise<BackgroundView | undefined> {
    const view = await detachedCalls.find(account, requestId);
    if (!isBackground(view)) return undefined;
    if (isExpired(view, clock.now())) throw noSuchResponse();
    return view;
  }

  async function find({ account, id, reserve }: Call) {
    const found = await stored.find(account, id, reserve);
    if (!found) throw noSuchResponse();
    return found;
  }

  async function show({ res, account, reserve }: Call, view: BackgroundView): Promise<undefined> {
    if (!isEnded(view)) {
      res.set("retry-after", String(pollSeconds));
      answerParts(res.status(200), [statusText(view)]);
      return undefined;
    }
    const ended = await endedResponse(deps, account, view, reserve);
    if (!ended) throw noSuchResponse();
    answerParts(res.status(200).set(ended.headers), [ended.json]);
    return undefined;
  }

  const router = Router();
  router.get(
    "/:id",
    handler(async (call) => {
      const { req, res, account, view } = call;
      const { stream, starting_after: after = -1 } = parse(responseQuery, req.query);
      const isStream = stream === true && req.method !== "HEAD";
      if (!view && stream) {
        await find(call);
        throw invalidValue("stream", "stream: only a response in the background can be streamed again.");
      }
      if (!view) return (await find(call)).response;
      if (!isStream) return show(call, view);
      await responseReaders.read(res, { account, view, after });
      return undefined;
    }),
  );
  router.delete(
    "/:id",
    handler(async ({ id, account, view }) => {
      if (view) await deleteJob(deps, account, view);
      else if (!(await stored.delete(account, id))) throw noSuchResponse();
      return { id, object: "response", deleted: true };
    }),
  );
  router.post(
    "/:id/cancel",
    handler(async (call) => {
      const { res, account, view } = call;
      if (!view) {
        await find(call);
        throw invalidValue("id", "id: only a response that was created with background: true can be cancelled.");
      }
      responseReaders.assertRoom(account);
      await cancelJob(deps, account, view);
      const findAgain = async () => {
        const again = await findView(account, view.requestId);
        if (!again) throw noSuchResponse();
        return again;
      };
      return show(call, await waitForEnd(deps, { account, res, waitMs: cancelMs }, findAgain));
    }),
  );
  router.all("/:id/cancel", methodNotAllowed("POST"));
  // In OpenAI's API a POST below `/v1/responses` is an unknown route, not a method that a response lacks.
  router.post("/:id", noSuchRoute);
  router.all("/:id", methodNotAllowed("GET", "HEAD", "DELETE"));
  router.get(
    "/:id/input_items",
    handler(async (call) => {
      const { req, id, view } = call;
      const page = parse(itemsQuery, req.query);
      if (view && !isEnded(view)) throw runs();
      return pageOf(namedItems(id, (await find(call)).input), page);
    }),
  );
  router.all("/:id/input_items", methodNotAllowed("GET", "HEAD"));
  router.use(databaseUnavailable);
  return router;
}

/**
 * Gives each item of a list a unique id, or pages would repeat. Items without an id, and those whose id occurred before, are
 * numbered.
 */
function namedItems(responseId: string, input: readonly JsonObject[]): readonly JsonObject[] {
  const seen = new Set<string>();
  return input.map((item, index) => {
    const { id, type = "message", role, content } = item;
    const own = text(id);
    const named = own && !seen.has(own) ? own : `msg_${responseId.replace(/^resp_/, "")}_input_${index}`;
    seen.add(named);
    return { ...item, id: named, type, ...(typeof content === "string" && { content: partsOf(role, content) }) };
  });
}

const partsOf = (role: unknown, written: string): readonly JsonObject[] =>
  role === "assistant"
    ? [{ type: "output_text", annotations: [], text: written }]
    : [{ type: "input_text", text: written }];

function pageOf(
  items: readonly JsonObject[],
  { limit = 20, after, order = "desc" }: z.infer<typeof itemsQuery>,
): object {
  const ordered = order === "asc" ? items : items.toReversed();
  const start = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1;
  if (after !== undefined && start === 0) throw invalidValue("after", "after: there is no such item.");
  const data = ordered.slice(start, start + limit);
  return {
    object: "list",
    data,
    first_id: data[0]?.["id"] ?? null,
    last_id: data.at(-1)?.["id"] ?? null,
    has_more: start + limit < ordered.length,
  };
}
