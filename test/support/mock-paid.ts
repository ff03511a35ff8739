import type { x402Facilitator } from "@x402/core/facilitator";
import {
  decodePaymentSignatureHeader,
  encodePaymentRequiredHeader,
  encodePaymentResponseHeader,
} from "@x402/core/http";
import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { onTestFinished } from "vitest";
import { startMockProvider } from "./mock-provider.ts";

/** A minimal paid service for a payer: every POST costs the same, and returns one image. */
export async function startMockPaid(facilitator: x402Facilitator, requirements: PaymentRequirements) {
  const mock = await startMockProvider({ usual: () => ({ body: {} }), frame: JSON.stringify });
  onTestFinished(() => mock.close());
  mock.always(async ({ method, headers, path }) => {
    if (method === "GET") return {};
    const payment = headers["payment-signature"];
    if (typeof payment !== "string") {
      const resource = { url: `http://${headers.host}${path}`, description: "-", mimeType: "-" };
      const required: PaymentRequired = { x402Version: 2, error: "-", resource, accepts: [requirements] };
      return { status: 402, headers: { "PAYMENT-REQUIRED": encodePaymentRequiredHeader(required) }, body: required };
    }
    const settled = await facilitator.settle(decodePaymentSignatureHeader(payment), requirements);
    return {
      status: settled.success ? 200 : 402,
      headers: { "PAYMENT-RESPONSE": encodePaymentResponseHeader(settled) },
      body: { data: [{ url: "http://localhost/media/one.png" }] },
    };
  });
  const bodies = () => mock.requests.flatMap(({ method, body }) => (method === "GET" ? [] : [body]));
  return { url: mock.url, bodies };
}
