import { expect, onTestFinished, test } from "vitest";
import { createSessions, type Subject, sessionsSchema } from "../../api/sessions/index.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { log } from "../support/archive-setup.ts";
import { createMovableClock, minuteMs, times } from "../support/money-setup.ts";
import { migrated } from "../support/schema.ts";
import { testStores } from "../support/servers.ts";

/** Two API instances. */
async function startBoth() {
  const { MONGODB_URI: uri } = await testStores();
  const clock = createMovableClock();
  const start = async () => {
    const mongo = await connectMongo(uri, clock, log);
    onTestFinished(() => mongo.close());
    await migrated(mongo, [sessionsSchema]);
    return createSessions({ mongo, clock });
  };
  return { clock, a: await start(), b: await start() };
}

const ofKey = (key: string) => (): Subject => ({ kind: "account", account: "acct_1", key });

test("a one-time code that is used many times at once, through two instances, begins one session", async () => {
  const { a, b } = await startBoth();
  const { code } = await a.issueCode(ofKey("key_code"));
  expect(await a.find(code)).toBeUndefined();
  const redeemed = await Promise.all(times(20, (at) => (at % 2 ? a : b).redeemCode(code)));
  const subject = expect.objectContaining({ kind: "account", account: "acct_1", key: "key_code" });
  expect(redeemed.filter((each) => each !== undefined)).toEqual([subject]);
  expect(await a.redeemCode(code)).toBeUndefined();
});

test("a one-time code ends after five minutes", async () => {
  const { a, clock } = await startBoth();
  const { code: early } = await a.issueCode(ofKey("key_early"));
  const { code: late } = await a.issueCode(ofKey("key_late"));
  clock.later(4 * minuteMs);
  expect(await a.redeemCode(early)).toMatchObject({ key: "key_early" });
  clock.later(minuteMs);
  expect(await a.redeemCode(late)).toBeUndefined();
});

test("a key has at most a hundred sessions: the oldest ends, and no other key's", async () => {
  const { a, b, clock } = await startBoth();
  const other = await a.begin(ofKey("key_other"));
  const secrets: string[] = [];
  for (const at of times(102, (index) => index)) {
    clock.later(1);
    secrets.push((await (at % 2 ? a : b).begin(ofKey("key_many"))).secret);
  }
  const found = await Promise.all(secrets.map(async (secret) => (await a.find(secret)) !== undefined));
  expect(found).toEqual(times(102, (at) => at >= 2));
  expect(await a.find(other.secret)).toMatchObject({ key: "key_other" });
});
