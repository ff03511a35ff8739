import { createHash } from "node:crypto";
import { type SignatureBytes, signBytes } from "@solana/kit";
import { expect, test } from "vitest";
import type { Wallet } from "../../infra/embedded/solana/index.ts";
import { answerOf, drawing, expectMoney, payFor, post, startPaid } from "../support/x402-setup.ts";

const json = (header: string) => JSON.parse(Buffer.from(header, "base64").toString("utf8"));
const headerOf = (payload: unknown) => ({
  "PAYMENT-SIGNATURE": Buffer.from(JSON.stringify(payload)).toString("base64"),
});

/** The same payment without the version before its message and the lookup tables after it, signed anew. */
async function asLegacy(header: string, { signer }: Wallet) {
  const payload = json(header);
  const bytes = Buffer.from(payload.payload.transaction, "base64");
  const message = bytes.subarray(1 + 2 * 64 + 1, -1);
  const signature: SignatureBytes = await signBytes(signer.keyPair.privateKey, new Uint8Array(message));
  payload.payload.transaction = Buffer.concat([bytes.subarray(0, 1 + 64), signature, message]).toString("base64");
  return headerOf(payload);
}

test("a payment in a legacy transaction is accepted like a versioned one", async () => {
  const all = await startPaid();
  const { service, payer } = all;
  const { headers, account } = await payFor(all, service, drawing());
  const legacy = await asLegacy(headers["PAYMENT-SIGNATURE"], payer);
  const drawn = await answerOf(post(service, drawing(), legacy));
  expect(drawn).toMatchObject({ status: 200, costUsd: "0.04", receipt: { success: true, payer: payer.address } });
  expect(await answerOf(post(service, drawing(), legacy))).toEqual({ ...drawn, replayed: "true" });
  await expectMoney(all, service, { [account]: { paidMicroUsd: 40_000n, costUsd: "0.04" } });
});

test("extensions, an Idempotency-Key and the order of fields do not change a payment", async () => {
  const all = await startPaid();
  const { service, provider } = all;
  const { headers, account } = await payFor(all, service, drawing());
  const first = await answerOf(post(service, drawing(), { ...headers, "Idempotency-Key": "one" }));
  expect(first).toMatchObject({ status: 200, replayed: null });
  const { x402Version, accepted, payload } = json(headers["PAYMENT-SIGNATURE"]);
  const id = createHash("sha256").update(account).digest("hex");
  const extensions = { "payment-identifier": { info: { required: false, id }, schema: {} } };
  const turned = Object.fromEntries(Object.entries(accepted).toReversed());
  for (const written of [
    { extensions, payload, accepted, x402Version },
    { x402Version, accepted: turned, payload },
  ])
    expect(await answerOf(post(service, drawing(), { ...headerOf(written), "Idempotency-Key": "two" }))).toEqual({
      ...first,
      replayed: "true",
    });
  expect(provider.requests).toHaveLength(1);
  await expectMoney(all, service, { [account]: { paidMicroUsd: 40_000n, costUsd: "0.04" } });
});
