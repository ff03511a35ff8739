import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { x402Facilitator } from "@x402/core/facilitator";
import { toFacilitatorSvmSigner } from "@x402/svm";
import { ExactSvmScheme } from "@x402/svm/exact/facilitator";
import { expect, onTestFinished, test } from "vitest";
import {
  available,
  expectPaid,
  openPayments,
  payFrom,
  paySomethingElse,
  quoteDocument,
  quoteRequest,
  settingsOf,
  settlePayment,
  startPayments,
  stateOf,
} from "../support/payments-setup.ts";
import { eventually } from "../support/service.ts";
import type { SolanaChain } from "../support/solana.ts";

type Fate =
  | "answer"
  | "lose the answer"
  | "lose the request"
  | "refuse with 400"
  | "fail with 500"
  | "refuse at length"
  | "say pending"
  | "lie";

/** The x402 packages' facilitator behind HTTP. */
async function startFacilitator(chain: SolanaChain) {
  const signer = toFacilitatorSvmSigner(chain.feePayer.signer, { defaultRpcUrl: chain.rpcUrl });
  const facilitator = new x402Facilitator().register(chain.network, new ExactSvmScheme(signer));
  const state = {
    fate: "answer" as Fate,
    settles: 0,
    tokens: new Set<string | undefined>(),
    supported: facilitator.getSupported() as unknown,
  };
  const server = createServer((incoming, answer) => void serve(incoming, answer));
  const refusal = { success: false, transaction: "", network: chain.network };
  async function serve(incoming: IncomingMessage, answer: ServerResponse) {
    state.tokens.add(incoming.headers.authorization);
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const json = (status: number, body: unknown) =>
      answer.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (incoming.url === "/supported") return json(200, state.supported);
    state.settles += 1;
    const { fate } = state;
    if (fate === "lose the request") return incoming.socket.destroy();
    if (fate === "fail with 500") return json(500, { error: "down" });
    if (fate === "refuse at length") return json(200, { ...refusal, errorReason: "invalid_".padEnd(9_000, "x") });
    const { paymentPayload, paymentRequirements } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const settled = await facilitator.settle(paymentPayload, paymentRequirements);
    if (fate === "lose the answer") return incoming.socket.destroy();
    if (fate === "say pending") return json(200, { ...settled, success: false, errorReason: "settlement_pending" });
    if (fate === "lie") return json(200, { ...settled, payer: "somebody else" });
    return json(fate === "refuse with 400" ? 400 : 200, settled);
  }
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, state };
}

async function start() {
  const all = await startPayments();
  const { url, state } = await startFacilitator(all.chain);
  const settings = {
    ...settingsOf(all.chain),
    X402_FEE_PAYER_KEY: "",
    X402_FACILITATOR_URL: url,
    X402_FACILITATOR_TOKEN: "secret-token",
  };
  const far = await openPayments(all.uri, all.clock, settings);
  await far.x402.start();
  const quoted = async () => (await quoteRequest(far)).body;
  const settle = (header: string) => settlePayment(far, header);
  return { ...all, far, url, quoted, settle, state, pay: async () => payFrom(all.chain, all.payer, await quoted()) };
}

test("a remote facilitator settles with the bearer token, without a local key", async () => {
  const all = await start();
  const { header, memo } = await all.pay();
  const settlement = await all.settle(header);
  expect(settlement).toMatchObject({ kind: "settled", account: `x402:${memo}` });
  expect(await all.settle(header)).toEqual(settlement);
  expect(all.state).toMatchObject({ settles: 1, tokens: new Set(["Bearer secret-token"]) });
  await expectPaid(all, memo);
});

test("the payer is read from the transaction, not from the facilitator's answer", async () => {
  const all = await start();
  all.state.fate = "lie";
  const { header, memo } = await all.pay();
  expect(await all.settle(header)).toMatchObject({ kind: "settled" });
  expect(await quoteDocument(all, memo)).toMatchObject({ payer: all.payer.address });
});

test("when a facilitator changes its fee payer, new quotes use it within ten minutes", async () => {
  const all = await start();
  const feePayer = (await all.chain.wallet()).address;
  const kind = { x402Version: 2, scheme: "exact", network: all.chain.network, extra: { feePayer } };
  all.state.supported = { kinds: [kind], extensions: [], signers: {} };
  const named = async () => (await all.quoted()).accepts[0]?.extra["feePayer"];
  expect(await named()).toBe(all.chain.feePayer.address);
  all.clock.later(600_000);
  expect(await named()).toBe(feePayer);
});

test.each(["answer", "refuse with 400"] as const)(
  "a refusal by the facilitator (%s) opens the quote again",
  async (fate) => {
    const all = await start();
    all.state.fate = fate;
    const required = await all.quoted();
    const { header } = await payFrom(all.chain, await all.chain.wallet("0.039999"), required);
    const reason = "invalid_exact_svm_transaction_simulation_failed";
    expect(await all.settle(header)).toMatchObject({ kind: "refused", reason });
    expect(all.state.settles).toBe(1);
    all.state.fate = "answer";
    const { header: good, memo } = await payFrom(all.chain, all.payer, required);
    expect(await all.settle(good)).toMatchObject({ kind: "settled" });
    await expectPaid(all, memo);
  },
);

test.each(["lose the answer", "say pending"] as const)(
  "it settles, and we hear otherwise (%s): found on chain by its memo",
  async (fate) => {
    const all = await start();
    all.state.fate = fate;
    const { header, memo } = await all.pay();
    expect(await all.settle(header)).toMatchObject({ kind: "settled", account: `x402:${memo}` });
    expect(all.state.settles).toBe(1);
    await expectPaid(all, memo);
  },
);

test.each(["lose the request", "fail with 500", "refuse at length"] as const)(
  "nothing is known (%s): decided by the chain, once the payment can land no more",
  async (fate) => {
    const all = await start();
    all.state.fate = fate;
    const { header, memo } = await all.pay();
    const gaveUp = all.settle(header).catch(() => undefined);
    await eventually(async () => (await stateOf(all, memo)) === "unknown");
    all.clock.later(60_000);
    await gaveUp;
    await all.far.x402.reconcile();
    expect(await stateOf(all, memo)).toBe("unknown");
    all.chain.advance(400);
    all.clock.later(2_000);
    expect(await all.far.x402.reconcile()).toMatchObject({ reopened: 1 });
    expect(await stateOf(all, memo)).toBe("open");
    expect(await all.received()).toBe(0n);
  },
);

test("a listed transaction that the node cannot return may be the payment: it is looked up again", async () => {
  const all = await start();
  const { chain, clock, far } = all;
  all.state.fate = "lose the answer";
  const { header, memo } = await all.pay();
  chain.faults.next("getSignaturesForAddress", { status: 503 }, 1_000);
  const gaveUp = all.settle(header).catch(() => undefined);
  await eventually(async () => (await stateOf(all, memo)) === "unknown");
  clock.later(60_000);
  await gaveUp;
  chain.faults.clear();
  chain.faults.next("getSignaturesForAddress", { answer: [] });
  clock.later(2_000);
  expect(await far.x402.reconcile()).toMatchObject({ unknown: 1 });
  chain.advance(400);
  clock.later(2_000);
  chain.faults.next("getTransaction", { answer: null });
  expect(await far.x402.reconcile()).toMatchObject({ reopened: 0, unknown: 1 });
  clock.later(2_000);
  expect(await far.x402.reconcile()).toMatchObject({ settled: 1 });
  await expectPaid(all, memo);
});

test("another wallet's transaction with the same memo is not the payment", async () => {
  const all = await start();
  all.state.fate = "lose the request";
  const required = await all.quoted();
  const { header, memo } = await payFrom(all.chain, all.payer, required);
  all.settle(header).catch(() => undefined);
  await eventually(async () => (await stateOf(all, memo)) === "unknown");
  // Pay one unit, with the memo of the quote, through the same facilitator.
  const cheap = { ...required.accepts[0], amount: "1" };
  const { header: forged } = await payFrom(all.chain, all.payer, { ...required, accepts: [cheap] } as never);
  const payload = JSON.parse(Buffer.from(forged, "base64").toString("utf8"));
  const signer = toFacilitatorSvmSigner(all.chain.feePayer.signer, { defaultRpcUrl: all.chain.rpcUrl });
  const settled = await new ExactSvmScheme(signer).settle(payload, payload.accepted);
  expect(settled.success).toBe(true);
  all.clock.later(60_000);
  await all.far.x402.reconcile();
  expect(await stateOf(all, memo)).toBe("unknown");
  expect(await available(all, memo)).toBeUndefined();
});

test("a transaction that the facilitator settled for a smaller amount is no payment", async () => {
  const all = await start();
  const required = await all.quoted();
  const header = await paySomethingElse(all.chain, all.payer, required, { amount: "1" });
  const paymentPayload = JSON.parse(Buffer.from(header, "base64").toString("utf8"));
  const cheap = { ...required.accepts[0], amount: "1" };
  const body = JSON.stringify({ paymentPayload: { ...paymentPayload, accepted: cheap }, paymentRequirements: cheap });
  expect(await (await fetch(`${all.url}/settle`, { method: "POST", body })).json()).toMatchObject({ success: true });
  expect(await all.received()).toBe(1n);
  expect(await all.settle(header)).toMatchObject({ kind: "refused" });
  expect(await all.payments.unused.total()).toEqual({ nanoUsd: 0n, payments: 0 });
});
