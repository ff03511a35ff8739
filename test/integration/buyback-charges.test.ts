import { expect, test } from "vitest";
import { formatUsd } from "../../shared/money/index.ts";
import { mockPng } from "../support/mock-openai-media.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";
import { localModel, nanoUsd } from "../support/service-setup.ts";

const own = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";
const chosen = "So11111111111111111111111111111111111111112";

interface Charge {
  readonly amount_usd: string;
  readonly buyback?: { readonly token: string; readonly amount_usd: string };
}

const said = [{ role: "user", content: "Hello!" }];
const contents = [{ role: "user", parts: [{ text: "Hello!" }] }];
const gemini = `/v1beta/models/${localModel}`;
const charged: readonly [path: string, body: object][] = [
  ...[false, true].flatMap((stream): [string, object][] => [
    ["/v1/chat/completions", { model: localModel, messages: said, stream }],
    ["/v1/messages", { model: localModel, messages: said, max_tokens: 50, stream }],
    ["/v1/responses", { model: localModel, input: "Hello!", stream }],
  ]),
  [`${gemini}:generateContent`, { contents }],
  [`${gemini}:streamGenerateContent?alt=sse`, { contents }],
  ["/v1/embeddings", { model: "local/embeddings", input: "Hello!" }],
  ["/v1/images/generations", { model: "local/image", prompt: "a lighthouse", size: "16x16" }],
  ["/v1/media/generations", { model: "local/speech", input: { text: "Hello!" } }],
];

test("every kind of charge accrues to the account's token at the time of the call; free calls do not", async () => {
  const stores = await testStores();
  const env = { BUYBACK_BPS: "10000", BUYBACK_TOKEN: own, BUYBACK_TOKENS: chosen, UPLOAD_USD_PER_GB_DAY: "100" };
  const service = await startService(stores, { env });
  const customer = await service.account("1.00");
  const post = async (path: string, body: object | Blob) => {
    const headers = { authorization: `Bearer ${customer.key}` };
    const sent = body instanceof Blob ? { body } : { body: JSON.stringify(body) };
    const type = body instanceof Blob ? {} : { "content-type": "application/json" };
    const answer = await fetch(service.baseUrl + path, { method: "POST", headers: { ...headers, ...type }, ...sent });
    expect(`${path} ${answer.status} ${(await answer.text()).slice(0, 200)}`).toMatch(/^\S+ 20[01]/);
  };
  const choose = (token: string | null) => service.admin("PATCH", `/accounts/${customer.id}`, { buyback_token: token });
  await choose(chosen);
  await Promise.all(charged.map(([path, body]) => post(path, body)));
  await post("/v1/uploads", new Blob([Uint8Array.from(mockPng)], { type: "image/png" }));
  await post("/v1/messages/count_tokens", { model: localModel, messages: said });
  await service.settled();
  await choose(null);
  const entries = (
    await Promise.all([customer.ledger("usage"), customer.ledger("storage")])
  ).flat() as unknown as Charge[];
  const costs = entries.map(({ amount_usd }) => amount_usd.replace("-", ""));
  expect(costs.filter((cost) => nanoUsd(cost) > 0n)).toHaveLength(charged.length + 1);
  // The scheduled job may have put some into a batch.
  const accruals = entries.map(({ buyback }) => buyback && { token: buyback.token, amount_usd: buyback.amount_usd });
  expect(accruals).toEqual(
    costs.map((amount_usd) => (nanoUsd(amount_usd) > 0n ? { token: chosen, amount_usd } : undefined)),
  );
});

test.each([
  ["one percent of a charge accrues to the service's own token by default", {}, 100n],
  ["nothing accrues at a share of 0", { BUYBACK_BPS: "0" }, 0n],
])("%s", async (_, env, bps) => {
  const service = await startService(await testStores(), { env });
  const customer = await service.account("1.00");
  expect((await customer.post("/v1/chat/completions", { model: localModel, messages: said })).status).toBe(200);
  await service.settled();
  const [entry] = (await customer.ledger("usage")) as unknown as readonly Charge[];
  const share = (-nanoUsd(entry?.amount_usd ?? "0") * bps + 5_000n) / 10_000n;
  // The scheduled job may have put it into a batch.
  const accrual = expect.objectContaining({ token: chosen, amount_usd: formatUsd(share) });
  expect(entry?.buyback).toEqual(bps > 0n ? accrual : undefined);
});
