import { z } from "zod";
import { responsesRequest } from "#formats";
import { countHeaders, storedNativeHeaders } from "./headers.ts";
import { operation, paidErrors, pathId, storing, typed } from "./operation.ts";

const response = z
  .looseObject({
    id: z.string(),
    object: z.literal("response"),
    model: z.string(),
    status: z.string(),
    output: typed,
    usage: z.looseObject({ input_tokens: z.int(), output_tokens: z.int(), total_tokens: z.int() }),
  })
  .meta({ id: "ResponsesAnswer" });

const deletedResponse = z.object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) });

const inputItems = z.object({
  object: z.literal("list"),
  data: z.array(z.looseObject({ id: z.string(), type: z.string() })),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
});

const ofResponse = pathId("resp_...");

export const responses = {
  "POST /v1/responses": operation(
    "createResponse",
    "OpenAI's Responses format, for that provider's models unless the operator opens it to all; stored for 24 hours unless `store` is false",
    {
      ...storing,
      body: responsesRequest,
      okOrEvents: ["The response, or its events", response, storedNativeHeaders],
    },
  ),
  "POST /v1/responses/input_tokens": operation("countResponseTokens", "The input tokens of a response; free", {
    errors: paidErrors,
    body: responsesRequest,
    ok: ["The count", z.object({ object: z.literal("response.input_tokens"), input_tokens: z.int() }), countHeaders],
  }),
  "GET /v1/responses/{id}": operation("getResponse", "A stored response of the account", {
    params: ofResponse,
    ok: ["The response", response],
    errors: [400, 401, 404, 500, 503],
  }),
  "DELETE /v1/responses/{id}": operation("deleteResponse", "Delete a stored response at once", {
    params: ofResponse,
    ok: ["It is gone", deletedResponse],
    errors: [401, 404, 500, 503],
  }),
  "GET /v1/responses/{id}/input_items": operation(
    "listInputItems",
    "The input of a stored response, with all that it referred to",
    {
      params: {
        ...ofResponse,
        query: z.object({
          limit: z.int().min(1).max(100).optional(),
          after: z.string().min(1).max(200).optional().describe("`last_id` of the page before"),
          order: z.enum(["asc", "desc"]).optional().describe("The default is desc"),
        }),
      },
      ok: ["A page of items", inputItems],
      errors: [400, 401, 404, 500, 503],
    },
  ),
};
