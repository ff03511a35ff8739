import { expect, test } from "vitest";
import { openCollection } from "../support/chaos-setup.ts";
import { mockError } from "../support/mock-openai.ts";
import { byKey, listNanoUsd, operatorKeys, ownKeysCustomer, ownKeysService } from "../support/own-keys-setup.ts";
import { eventually } from "../support/service.ts";
import { asking, expectUntouched, nanoUsd, refusalOf } from "../support/service-setup.ts";

const { running, nextModel, keysUsed } = ownKeysService();
const chat = "/v1/chat/completions";
const { alpha } = operatorKeys;

/** Changes the stored key behind the API's back, as between the admission of a call and its start. */
const changes: Readonly<Record<string, readonly [change: object | null, status: number, code: string]>> = {
  deleted: [null, 424, "byok_authentication_failed"],
  disabled: [{ $set: { disabled: true } }, 424, "byok_authentication_failed"],
  "another account's": [{ $set: { account: "acct_another" } }, 424, "byok_authentication_failed"],
  "for another upstream": [{ $set: { upstream: "beta" } }, 424, "byok_authentication_failed"],
  "sealed under another version": [{ $inc: { version: 1 } }, 503, "no_capacity"],
  damaged: [{ $set: { sealed: `1.AAAAAAAA.${"A".repeat(80)}` } }, 503, "no_capacity"],
};

test.each(Object.entries(changes))(
  "a key that is %s by then ends the call, whatever its mode",
  async (_, [change, status, code]) => {
    const { service, mock, stores } = running;
    const keys = await openCollection<{ _id: string }>(stores, "providerKeys");
    for (const mode of ["first", "only", "last"]) {
      mock.reset();
      const customer = await ownKeysCustomer(service);
      const key = await customer.add("ok", { mode });
      // The list is in the cache of the API from here on.
      if (mode === "last") mock.always(mockError(500, "down"));
      else mock.always(byKey);
      expect((await customer.post(chat, { ...asking(nextModel()), provider: { byok: "never" } })).status).not.toBe(424);
      mock.reset();
      mock.always(mode === "last" ? mockError(500, "down") : byKey);
      if (change) await keys.updateOne({ _id: key.id }, change);
      else await keys.deleteOne({ _id: key.id });
      const response = await customer.post(chat, asking(nextModel()));
      expect(await refusalOf(response)).toMatchObject({
        status,
        error: { code, message: expect.stringContaining(key.id) as string },
      });
      // A key to be tried last comes after the operator's, which have failed here.
      const tried = mode === "last" ? 2 : 0;
      expect(mock.requests).toHaveLength(tried);
    }
  },
);

test("a credential that was replaced, and a key that was disabled, are out of use after a minute at the latest", async () => {
  const { service, advance, stores } = running;
  const keys = await openCollection<{ _id: string }>(stores, "providerKeys");
  const customer = await ownKeysCustomer(service);
  const model = nextModel();
  const key = await customer.add("ok", { mode: "only" });
  await customer.post(chat, asking(model));
  const replacement = (await customer.add("ok", { disabled: true })).credential;
  const patched = await customer.provider("PATCH", `/${key.id}?check=false`, { credential: replacement });
  expect(patched.status).toBe(200);
  advance(61_000);
  await eventually(async () => (await customer.post(chat, asking(model))).ok);
  expect(keysUsed()).toEqual([key.credential, replacement]);
  // Only the worker can learn of this.
  advance(45_000);
  await eventually(async () => (await customer.post(chat, asking(model))).ok);
  await keys.updateOne({ _id: key.id }, { $set: { disabled: true } });
  await service.settled();
  const before = keysUsed().length;
  advance(16_000);
  const last = await customer.post(chat, asking(model));
  expect(last.status).toBe(424);
  expect(keysUsed()).toHaveLength(before);
});

test("the failures of one customer's key leave another's, and the operator's, as they were", async () => {
  const { service, mock, advance } = running;
  const model = nextModel();
  const storm = [await ownKeysCustomer(service), await ownKeysCustomer(service), await ownKeysCustomer(service)];
  for (const [at, kind] of ["limited", "down", "forbidden"].entries()) await storm[at]?.add(kind);
  const [other, shared] = [await ownKeysCustomer(service), await ownKeysCustomer(service)];
  const key = await other.add("ok");
  const only = { provider: { byok: "only", only: ["alpha"] } };
  for (let round = 0; round < 12; round++)
    await Promise.all(storm.map((customer) => customer.post(chat, { ...asking(model), ...only })));
  // Each failed probe doubles the time for which the key that is down is left alone.
  for (const ms of [5_000, 10_000, 20_000]) {
    advance(ms);
    await storm[1]?.post(chat, { ...asking(model), ...only });
  }
  const stormed = mock.requests.length;
  expect(stormed).toBeGreaterThan(12);
  expect(keysUsed()).not.toContain(alpha);

  const mine = await other.post(chat, asking(model));
  expect([mine.status, mine.headers.get("x-xm-upstream-key")]).toEqual([200, "own"]);
  const theirs = await shared.post(chat, asking(model));
  expect([theirs.status, nanoUsd(theirs.headers.get("x-xm-cost-usd") ?? "")]).toEqual([200, listNanoUsd]);
  expect(theirs.headers.get("x-xm-upstream-key")).toBeNull();
  expect(keysUsed().slice(stormed)).toEqual([key.credential, alpha]);
  // The customers themselves fall back at once, without asking for a key that is known to fail.
  const fallen = await storm[1]?.post(chat, asking(model));
  expect(fallen?.headers.get("x-xm-upstream-key")).toBe("shared");
  expect(keysUsed().slice(stormed)).toEqual([key.credential, alpha, alpha]);
  const upstreams = await service.admin<{ data: { id: string; state: string }[] }>("GET", "/upstreams");
  expect(upstreams.data.map(({ id, state }) => [id, state])).toEqual([
    ["alpha", "ready"],
    ["beta", "ready"],
    ["keyless", "no key"],
  ]);
  for (const customer of storm.toSpliced(1, 1)) await expectUntouched(service, customer, "10.00");
  expect((await service.check()).ok).toBe(true);
});
