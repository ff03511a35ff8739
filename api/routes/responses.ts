import { type Request, type RequestHandler, Router } from "express";
import { z } from "zod";
import { invalidValue, noCapacity, notFound } from "#errors";
import { inputTokensCodec, responsesCodec, responsesRequest } from "#formats";
import { type JsonObject, text } from "#json";
import type { Caller, Keys } from "#keys";
import type { ByteBudget, ByteShare } from "#platform/byte-budget";
import type { StoredResponses } from "#stored-responses";
import { authenticate } from "../admission/authenticate.ts";
import { methodNotAllowed, noSuchRoute } from "../http/errors.ts";
import { parse, wholeNumber } from "../http/input.ts";
import { refTo, requestOf } from "../http/openapi/formats/index.ts";
import { countHeaders, storedRoutedHeaders } from "../http/openapi/headers.ts";
import { operation, pathId } from "../http/openapi/operation.ts";
import { paid } from "./paid-operation.ts";

interface ResponseDeps {
  readonly keys: Keys;
  readonly responses: StoredResponses;
  readonly bodyBudget: ByteBudget;
}

/** A stored response takes memory for its text, its value and the text of the answer. */
const responseCopies = 4;

const noSuchResponse = () => notFound("response");

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
      { endpoint: "/v1/responses", job: "chat", codec: responsesCodec, format: "responses", refersToStored: true },
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
    "GET /v1/responses/{id}": operation("getResponse", "Get a stored response of the account", {
      params: ofResponse,
      ok: ["The response", refTo("ResponsesAnswer")],
      errors: [400, 401, 404, 500, 503],
    }),
    "DELETE /v1/responses/{id}": operation("deleteResponse", "Delete a stored response immediately", {
      params: ofResponse,
      ok: [
        "The response was deleted",
        z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) }),
      ],
      errors: [401, 404, 500, 503],
    }),
    "GET /v1/responses/{id}/input_items": operation(
      "listInputItems",
      "The input of a stored response, including the items that it referred to",
      {
        params: { ...ofResponse, query: itemsQuery },
        ok: ["A page of items", refTo("InputItemList")],
        errors: [400, 401, 404, 500, 503],
      },
    ),
  },
};

/** The stored responses of an account, mounted at `/v1/responses`. */
export function responsesRoutes({ keys, responses: stored, bodyBudget }: ResponseDeps): Router {
  type Handle = (req: Request<{ id: string }>, caller: Caller, memory: ByteShare) => Promise<object>;
  const handler =
    (handle: Handle): RequestHandler<{ id: string }> =>
    async (req, res) => {
      let memory: ByteShare | undefined;
      res.once("close", () => memory?.close());
      const caller = await authenticate(keys, req);
      if (res.closed) return;
      memory = bodyBudget.share(caller.account);
      res.json(await handle(req, caller, memory));
    };
  async function find({ account }: Caller, id: string, memory: ByteShare) {
    const found = await stored.find(account, id, (textBytes) => {
      if (!memory.take(responseCopies * textBytes))
        throw noCapacity("Too many large responses are being read right now.", 2);
    });
    if (!found) throw noSuchResponse();
    return found;
  }

  const router = Router();
  router.get(
    "/:id",
    handler(async ({ params, query }, caller, memory) => {
      if (query["stream"] === "true") throw invalidValue("stream", "stream: a stored response is read as JSON only.");
      return (await find(caller, params.id, memory)).response;
    }),
  );
  router.delete(
    "/:id",
    handler(async ({ params: { id } }, { account }) => {
      if (!(await stored.delete(account, id))) throw noSuchResponse();
      return { id, object: "response", deleted: true };
    }),
  );
  // In OpenAI's API a POST below `/v1/responses` is an unknown route, not a method that a response lacks.
  router.post("/:id", noSuchRoute);
  router.all("/:id", methodNotAllowed("GET", "HEAD", "DELETE"));
  router.get(
    "/:id/input_items",
    handler(async ({ params: { id }, query }, caller, memory) => {
      const page = parse(itemsQuery, query);
      return pageOf(namedItems(id, (await find(caller, id, memory)).input), page);
    }),
  );
  router.all("/:id/input_items", methodNotAllowed("GET", "HEAD"));
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
