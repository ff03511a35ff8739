import { expect, test } from "vitest";
import { holdCommands, posts } from "../support/chaos-generation-setup.ts";
import { heldWire, lost } from "../support/chaos-setup.ts";
import { startPair } from "../support/chaos-x402-setup.ts";
import { brokenWire, type Command } from "../support/money-proxy.ts";
import { eventually } from "../support/service.ts";
import { answerOf, drawing, expectMoney, ledgerOf, paidOnce, payFor, post } from "../support/x402-setup.ts";

test("killed with the payment held, and the next one killed during the release: the third runs the call, and it is paid once", async () => {
  let accounts = 0;
  const all = await startPair({
    stores: async (shared) => {
      const wire = await heldWire(shared.REDIS_URL);
      // The first update is the credit, the second the hold: the job never reaches its queue.
      const { stores } = await holdCommands(shared, ({ update, insert }) => {
        if (update === "accounts" && ++accounts === 2) wire.hold();
        return accounts >= 2 && insert === "ledger";
      });
      return { ...stores, REDIS_URL: wire.address };
    },
  });
  const { api, client, provider, stores } = all;
  const givingBack = await holdCommands(stores, ({ insert }) => insert === "ledger");
  const next = await all.another(givingBack.stores);
  const { headers, account } = await payFor(all, client, drawing());
  const connectionLost = lost(post(api.client, drawing(), headers));
  await eventually(async () => (await client.check()).open_holds === 1);
  api.kill("SIGKILL");
  expect(await connectionLost).toBe(true);
  await api.leaseEnded();
  const secondLost = lost(post(next.client, drawing(), headers));
  await givingBack.reached;
  next.kill("SIGKILL");
  expect(await secondLost).toBe(true);
  await next.leaseEnded();
  expect(await answerOf(post(client, drawing(), headers))).toMatchObject({ status: 200, costUsd: "0.04" });
  expect(posts(provider)).toHaveLength(1);
  expect(await ledgerOf(client, account)).toMatchObject([
    { kind: "credit" },
    { amount_usd: "0.00" },
    { kind: "usage" },
  ]);
  await expectMoney(all, client, { [account]: paidOnce });
});

/**
 * Freezes an API at the `nth` command of this kind until another one has answered the same payment; returns its answer.
 */
async function freezeAt(isTaken: (command: Command) => boolean, nth: number) {
  let freeze = () => {};
  let count = 0;
  const { promise: frozen, resolve } = Promise.withResolvers<void>();
  const all = await startPair({
    // A frame for an instance presumed dead finds no stream: its caller gets the error when the wait ends.
    env: { MEDIA_SYNC_TIMEOUT: "8" },
    stores: async (stores) => {
      const MONGODB_URI = await brokenWire(stores.MONGODB_URI, (command) => {
        if (isTaken(command) && ++count === nth) {
          freeze();
          resolve();
        }
        return "pass";
      });
      return { ...stores, MONGODB_URI };
    },
  });
  const { api, client, provider } = all;
  freeze = () => api.kill("SIGSTOP");
  const { headers, account } = await payFor(all, client, drawing());
  const late = answerOf(post(api.client, drawing(), headers));
  await frozen;
  await api.leaseEnded();
  const answer = await answerOf(post(client, drawing(), headers));
  api.kill("SIGCONT");
  const lateAnswer = await late;
  const repeated = await answerOf(post(client, drawing(), headers));
  expect(repeated).toEqual({ ...answer, replayed: "true" });
  // If its connection broke during the pause, it looks the key up again and finds the response.
  const refusal = expect.objectContaining({ status: 503, receipt: lateAnswer.receipt }) as object;
  expect(lateAnswer.receipt).toMatchObject({ success: true });
  expect([repeated, refusal]).toContainEqual(lateAnswer);
  expect(posts(provider)).toHaveLength(1);
  await expectMoney(all, client, { [account]: paidOnce });
  return answer;
}

test("an API frozen over its key or its hold, and taken for dead: it answers 503 or the stored answer, and the call runs once", async () => {
  const answers = await Promise.all([
    freezeAt(({ insert }) => insert === "idempotency", 1),
    // The first update is the credit.
    freezeAt(({ update }) => update === "accounts", 2),
  ]);
  for (const answer of answers) expect(answer).toMatchObject({ status: 200, replayed: null, costUsd: "0.04" });
});
