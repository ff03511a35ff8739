import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { errorBody, errorHeaders, meaningsOf } from "../http/openapi/errors.ts";
import { examples, refTo } from "../http/openapi/formats/index.ts";
import { idempotencyKey, storedCallHeaders } from "../http/openapi/headers.ts";
import { type Details, json, operation } from "../http/openapi/operation.ts";
import type { PaidRoute } from "../paid-route.ts";

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

const paidErrors = [400, 401, 402, 403, 404, 408, 410, 413, 415, 429, 500, 502, 503, 504];

const examplesByOperation: Readonly<Record<string, Details["examples"]>> = examples;

/** `stores`: the answers are stored for an `Idempotency-Key`. */
export function callOperation(
  { payable, isFree, stores = !isFree }: Pick<PaidRoute, "payable" | "isFree"> & { readonly stores?: boolean },
  { operationId, summary, params, responses, ...details }: Call,
): ZodOpenApiOperationObject {
  const header = {
    ...params?.header?.shape,
    ...(stores && idempotencyKey.shape),
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
    responses: { ...responses, ...(payable && { "402": paymentRequired }) },
  });
}

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
