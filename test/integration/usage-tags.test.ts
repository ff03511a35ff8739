import { expect, test } from "vitest";
import { type Money, maxMonthTags } from "../../shared/money/index.ts";
import { dayMs } from "../../shared/platform/clock.ts";
import { captureOf, held, holdOf, inTurn, openAccount, profiled, startBank, times } from "../support/money-setup.ts";

const monthOf = (time: number) => new Date(time).toISOString().slice(0, 7);
const all = { from: "2000-01-01", to: "2999-12-31", limit: 10_000 };

async function call(money: Money, account: string, tags: readonly string[] | undefined) {
  const hold = await held(money, holdOf(account, 100n));
  await money.charge(captureOf(hold, 1n, { tags }));
  return hold.requestId;
}

async function byTag(money: Money, account: string, period: object = {}) {
  const rows = await money.usage(account, { ...all, ...period, groupBy: ["tag"] });
  return new Map(rows.map(({ tag, calls, costNanoUsd }) => [tag, [calls, costNanoUsd]]));
}

test("an account has at most 1,000 tags a month, however many processes capture; the rest is other", async () => {
  const { money, mongo, clock, account, another } = await startBank({ balanceNanoUsd: 1_000_000n });
  const processes = [money, await another(), await another()];
  const quiet = await openAccount(money, 1_000n);
  await call(money, quiet, ["mine"]);
  const made = 330;
  const tagsOf = (at: number) => times(10, (tag) => (tag === 0 ? "$all" : `tag-${at}-${tag}`));
  const first = await call(money, account, tagsOf(made));
  await Promise.all(times(made, (at) => call(inTurn(processes, at), account, tagsOf(at))));
  // A new process knows no tag. One call has a tag that is counted and one that is not.
  const fresh = await another();
  await call(fresh, account, ["$all", "late"]);
  await call(fresh, account, undefined);
  await money.sumUsage();

  const found = await byTag(money, account);
  const named = [...found.keys()].flatMap((tag) => (tag == null || tag === "other" ? [] : [tag]));
  expect(named).toHaveLength(maxMonthTags);
  expect(found.get("$all")).toEqual([made + 2, BigInt(made + 2)]);
  expect(found.get(null)).toEqual([1, 1n]);
  const stored = await mongo.connection.collection("usageTags").find({ account }).toArray();
  expect(stored.map(({ tags }) => (tags as string[]).toSorted())).toEqual([named.toSorted()]);
  // Each call counts once under each name, so a call with several further tags counts once in `other`.
  const entries = await money.ledger(account, { limit: 1_000, kind: "usage" });
  const isOther = (tags: readonly string[] = []) => tags.some((tag) => !found.has(tag));
  const others = entries.filter(({ request }) => isOther(request?.tags)).length;
  expect(found.get("other")).toEqual([others, BigInt(others)]);
  // What the caller sent stays with the call.
  expect(entries.filter(({ request }) => request?.tags?.length === 10)).toHaveLength(made + 1);
  expect(await byTag(money, quiet)).toEqual(new Map([["mine", [1, 1n]]]));

  // A full list costs no write, and a call without tags never does.
  const writes = await profiled(mongo, { ns: /[.]usageTags$/ }, async () => {
    await call(fresh, account, ["later"]);
    await call(fresh, account, undefined);
  });
  expect(writes).toEqual([]);

  // The next month has tags of its own, for refunds of earlier calls too.
  const month = monthOf(clock.now());
  clock.later(32 * dayMs);
  await call(money, account, ["late"]);
  await money.refund(account, first);
  await money.sumUsage();
  const next = await byTag(money, account, { from: `${monthOf(clock.now())}-01` });
  expect(next.get("late")).toEqual([1, 1n]);
  expect(next.get("$all")).toEqual([0, -1n]);
  expect(next.size).toBe(11);
  expect((await byTag(money, account, { to: `${month}-31` })).size).toBe(maxMonthTags + 2);
});

test("a call is captured and counted although its tags cannot be stored", async () => {
  const { money, mongo, account } = await startBank();
  const tags = mongo.connection.collection("usageTags");
  await tags.drop();
  // A view cannot be written.
  await mongo.connection.createCollection("usageTags", { viewOn: "ledger", pipeline: [] });
  await call(money, account, ["a", "b"]);
  await money.sumUsage();
  expect(await byTag(money, account)).toEqual(new Map([["other", [1, 1n]]]));
});
