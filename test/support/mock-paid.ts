import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { x402Facilitator } from "@x402/core/facilitator";
import {
  decodePaymentSignatureHeader,
  encodePaymentRequiredHeader,
  encodePaymentResponseHeader,
} from "@x402/core/http";
import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { onTestFinished } from "vitest";

/** A minimal paid service for a payer: every POST costs the same, and returns one image. */
export async function startMockPaid(facilitator: x402Facilitator, requirements: PaymentRequirements) {
  const bodies: unknown[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      if (request.method === "GET") return response.end("{}");
      bodies.push(JSON.parse(await textOf(request)));
      const header = request.headers["payment-signature"];
      if (typeof header !== "string") {
        const resource = { url: `http://${request.headers.host}${request.url}`, description: "-", mimeType: "-" };
        const required: PaymentRequired = { x402Version: 2, error: "-", resource, accepts: [requirements] };
        response.writeHead(402, { "PAYMENT-REQUIRED": encodePaymentRequiredHeader(required) });
        return response.end(JSON.stringify(required));
      }
      const settled = await facilitator.settle(decodePaymentSignatureHeader(header), requirements);
      response.writeHead(settled.success ? 200 : 402, { "PAYMENT-RESPONSE": encodePaymentResponseHeader(settled) });
      return response.end(JSON.stringify({ data: [{ url: "http://localhost/media/one.png" }] }));
    })();
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}
