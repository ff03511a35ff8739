import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { sessionHeader } from "#formats";
import { cacheMarksHeader } from "../admission/cache-marks.ts";
import { wireOf } from "../http/fields.ts";
import { errorBody, errorHeaders, meaningsOf } from "../http/openapi/errors.ts";
import { examples, refTo } from "../http/openapi/formats/index.ts";
import { acceptedHeaders, idempotencyKey, storedCallHeaders } from "../http/openapi/headers.ts";
import { type Details, json, operation } from "../http/openapi/operation.ts";
import { tagsField } from "../http/tags.ts";
import type { PaidRoute } from "../paid-route.ts";
import { cacheHeaders } from "../response-cache/asked.ts";
import { jobObject } from "./job-object.ts";
import { jobCallbacks, responseCallbacks } from "./webhook-events.ts";

/** A paid route with its operation in the OpenAPI document. */
export interface DescribedRoute extends PaidRoute {
  readonly operation: ZodOpenApiOperationObject;
}

interface Call extends Details {
  readonly operationId: string;
  readonly summary: string;
}

export const paid = (route: PaidRoute, call: Call): DescribedRoute => ({
  ...route,
  operation: callOperation(route, call),
});

const paidErrors = [400, 401, 402, 403, 404, 408, 410, 413, 415, 424, 429, 500, 502, 503, 504];

const examplesByOperation: Readonly<Record<string, Details["examples"]>> = examples;

/** `stores`: the answers are stored for an `Idempotency-Key`. */
export function callOperation(
  {
    payable,
    isFree,
    cacheable,
    format,
    stores = !isFree,
  }: Pick<PaidRoute, "payable" | "isFree" | "cacheable" | "format"> & { readonly stores?: boolean },
  { operationId, summary, params, responses, ...details }: Call,
): ZodOpenApiOperationObject {
  // An asynchronous call of this format answers with its response.
  const inBackground = format === "responses";
  const header = {
    ...params?.header?.shape,
    ...sessionHeader.shape,
    ...cacheMarksHeader,
    ...(cacheable && cacheHeaders),
    ...(!isFree && tagsField),
    ...(stores && { ...idempotencyKey.shape, ...(!isFree && asyncHeaders) }),
    ...(payable && { "PAYMENT-SIGNATURE": paymentSignature }),
  };
  const given = examplesByOperation[operationId];
  return operation(operationId, summary, {
    isCall: true,
    errors: [...paidErrors, ...(stores ? [409] : [])],
    ...(details.body && given && { examples: given }),
    ...(payable && { security: [{ bearer: [] }, {}] }),
    ...details,
    ...((params || Object.keys(header).length > 0) && {
      params: { ...params, ...(Object.keys(header).length > 0 && { header: z.object(header) }) },
    }),
    ...(stores && !isFree && { callbacks: inBackground ? responseCallbacks : jobCallbacks }),
    responses: {
      ...responses,
      ...(!isFree && !inBackground && { "202": accepted }),
      ...(payable && { "402": paymentRequired }),
    },
  });
}

const asyncHeaders = {
  Prefer: z
    .string()
    .optional()
    .meta({ example: "respond-async, wait=20" })
    .describe(
      "`respond-async`: 202 with a job. `respond-async, wait=20`: waits for the answer for up to 20 seconds (1 to 60) first. The query `async=1` is the same as `respond-async`",
    ),
  "x-xm-metadata": z
    .string()
    .max(8_192)
    .optional()
    .meta({ example: '{"order":"17"}' })
    .describe("With `Prefer: respond-async`: a JSON object of at most 16 texts, shown in the job"),
  "x-xm-webhook": z
    .string()
    .optional()
    .meta({ example: "https://example.com/hook" })
    .describe(
      "With `Prefer: respond-async`: a URL, or the id of a webhook endpoint, that receives the event of the job's end",
    ),
  "x-xm-cancel-after": z
    .string()
    .optional()
    .meta({ example: "90" })
    .describe("With `Prefer: respond-async`: seconds (1 to 86400) after which the job ends"),
};

/** The answer to `Prefer: respond-async`. */
const accepted = {
  description: "With `Prefer: respond-async`: the job",
  headers: acceptedHeaders,
  content: json(wireOf(jobObject)),
};

const paymentSignature = z
  .string()
  .optional()
  .describe(
    "Without a key: an x402 version 2 payment of the amount in the 402, in base64. It is valid for this exact request only, which may be repeated with it for 24 hours",
  );

const paymentResponse = z
  .string()
  .optional()
  .describe(
    "The outcome of the payment that came with the request, in base64; also sent with errors that occur after it was settled",
  );

const paymentHeaders = z.object({
  "PAYMENT-REQUIRED": z
    .string()
    .optional()
    .describe("The body in base64, for x402 clients; sent if the request has no key"),
  "PAYMENT-RESPONSE": paymentResponse,
});

/** Headers of an answer that x402 may have paid for. */
export const payableHeaders = storedCallHeaders.extend({ "PAYMENT-RESPONSE": paymentResponse });

/** The 402 of x402 version 2 (docs/api/inference.md, "Payment required"). */
const paymentRequired = {
  description: `Without a key: what to pay, or why the payment was not accepted. ${meaningsOf(402)}`,
  headers: errorHeaders(402, "common", true).extend(paymentHeaders.shape),
  content: json(z.union([refTo("PaymentRequired"), errorBody])),
};
