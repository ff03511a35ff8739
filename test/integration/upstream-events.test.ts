import { expect, onTestFinished, test } from "vitest";
import { eventOf } from "../../api/routes/webhook-events.ts";
import { loadCatalog } from "../../shared/catalog/index.ts";
import { readWorkers, registerWorker, type UpstreamState } from "../../shared/jobs/index.ts";
import { connectMongo } from "../../shared/platform/mongo/connection.ts";
import { createSecrets } from "../../shared/secrets/index.ts";
import { createTrafficCounter, startTraffic } from "../../shared/traffic/index.ts";
import { createWebhooks, type EventType, operatorAccount } from "../../shared/webhooks/index.ts";
import { watchUpstreams } from "../../workers/handlers/upstream-events.ts";
import { connect, log } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { migrated } from "../support/schema.ts";
import { testStores } from "../support/servers.ts";
import { webhookEnvironment } from "../support/webhook-receiver.ts";
import { hookUrl } from "../support/webhook-store-setup.ts";

const minuteMs = 60_000;
const at = { upstream: "openai", model: "openai/gpt-4o-mini" };
const operatorEventsAccount = "acct_operator";

/** A worker whose upstream and its attempts a test decides, and the scheduled job that derives the events. */
async function start() {
  const stores = await testStores();
  const clock = createManualClock(Date.now());
  const [redis, mongo] = [await connect(stores, "fail-fast"), await connectMongo(stores.MONGODB_URI, clock, log)];
  onTestFinished(() => mongo.close());
  await migrated(mongo);
  const webhooks = createWebhooks({ mongo, secrets: createSecrets(await webhookEnvironment()), clock });
  await webhooks.endpoints.create(operatorEventsAccount, { url: hookUrl("a"), events: ["upstream.*"] });
  const counter = createTrafficCounter();
  const traffic = startTraffic({ counter, redis, clock, log });
  onTestFinished(() => traffic.stop());
  let state: UpstreamState = "ready";
  const record = () => ({
    pools: {},
    upstreams: { openai: state, mistral: "no key" as const },
    details: { openai: { lastFailure: { at: clock.now(), message: "alpha failed" } } },
    catalog: "a",
  });
  const worker = registerWorker({ worker: "wrk_1", redis, clock, log, record });
  const deps = {
    catalog: loadCatalog(undefined),
    readWorkers: () => readWorkers({ redis, clock }),
    readAttempts: () => traffic.readUpstreams("minute"),
    webhooks,
    operatorEventsAccount,
    clock,
  };
  const bodyOf = async (id: string) => (await webhooks.deliveries.get(operatorEventsAccount, id)).body ?? "{}";
  /** What operators see, and what their account's endpoint is sent; the oldest first. */
  async function events() {
    const notices = (await webhooks.notices.list(operatorAccount, { limit: 100 })).toReversed();
    const sent = await webhooks.deliveries.list(operatorEventsAccount, { limit: 100 }, {});
    const bodies = await Promise.all(sent.toReversed().map(({ id }) => bodyOf(id)));
    expect(bodies.map((body) => ({ ...JSON.parse(body), id: "" }) as object)).toEqual(
      notices.map((notice) => ({ ...notice, id: "" })),
    );
    for (const notice of notices) expect(eventOf(notice.type as EventType).parse(notice)).toEqual(notice);
    return notices;
  }
  /** After these attempts, a minute later by default. */
  async function look({
    failed = 0,
    succeeded = 0,
    cancelled = 0,
    streams = 0,
    afterMs = minuteMs,
    dying = false,
  } = {}) {
    clock.advance(afterMs);
    for (let n = 0; n < failed; n++) counter.attempted(at, { isFailed: true });
    for (let n = 0; n < cancelled; n++) counter.attempted(at, { isFailed: false });
    for (let n = 0; n < succeeded; n++) counter.attempted(at, { ms: 20 });
    for (let n = 0; n < streams; n++) counter.firstEvent(at, 5);
    // Writes the counts of this process.
    await traffic.stop();
    await worker.write();
    const dies = async () => {
      throw new Error("the process died");
    };
    const notices = { ...webhooks.notices };
    const record = async (event: Parameters<typeof webhooks.record>[0]) =>
      dying && event.account === operatorAccount ? dies() : webhooks.record(event);
    const run = watchUpstreams({ ...deps, webhooks: { notices, record } });
    if (dying) await expect(run).rejects.toThrow("died");
    else await run;
    return (await webhooks.notices.latest(operatorAccount, "openai"))?.type;
  }
  const become = (next: UpstreamState) => {
    state = next;
  };
  return { look, events, become, clock };
}

test("an upstream is down once five attempts have failed in five minutes and none succeeded, and recovers with a success", async () => {
  const { look, events, clock } = await start();
  expect(await look({ succeeded: 1 })).toBeUndefined();
  expect(await look({ failed: 20 })).toBeUndefined();
  // The success is five minutes old; four failures are within them, and calls whose callers left say nothing.
  expect(await look({ failed: 4, afterMs: 5 * minuteMs })).toBeUndefined();
  expect(await look({ cancelled: 3 })).toBeUndefined();
  await look({ failed: 1, dying: true });
  const downAt = clock.now();
  expect(await look({ afterMs: 0 })).toBe("upstream.down");
  expect(await look({ failed: 10, cancelled: 2 })).toBe("upstream.down");
  expect(await look({ afterMs: 60 * minuteMs })).toBe("upstream.down");
  expect(await look({ streams: 1 })).toBe("upstream.recovered");
  // A minute later, the failures of before still count for nothing.
  expect(await look()).toBe("upstream.recovered");
  expect(await look({ failed: 5, afterMs: 6 * minuteMs })).toBe("upstream.down");
  expect(await look({ succeeded: 1 })).toBe("upstream.recovered");
  const seconds = (ms: number) => Math.floor(ms / 1_000);
  const all = await events();
  expect(all.map(({ type }) => type)).toEqual([
    "upstream.down",
    "upstream.recovered",
    "upstream.down",
    "upstream.recovered",
  ]);
  expect(all.slice(0, 2)).toMatchObject([
    { data: { id: "openai", object: "upstream", since: seconds(downAt), last_failure: { message: "alpha failed" } } },
    { data: { id: "openai", since: seconds(downAt) } },
  ]);
});

test("a refused key is announced at once, and so is its acceptance, whatever attempts failed before", async () => {
  const { look, events, become } = await start();
  become("key refused");
  expect(await look({ failed: 9 })).toBe("upstream.key_refused");
  expect(await look({ failed: 9 })).toBe("upstream.key_refused");
  become("no key");
  expect(await look()).toBe("upstream.key_refused");
  become("open");
  expect(await look()).toBe("upstream.recovered");
  expect(await look()).toBe("upstream.recovered");
  become("key refused");
  await look({ afterMs: 0, dying: true });
  expect(await look({ afterMs: 0 })).toBe("upstream.key_refused");
  expect((await events()).map(({ type }) => type)).toEqual([
    "upstream.key_refused",
    "upstream.recovered",
    "upstream.key_refused",
  ]);
});
