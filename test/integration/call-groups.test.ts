import { Worker } from "bullmq";
import { expect, onTestFinished, test } from "vitest";
import { numbered, startCallGroups, textsOf } from "../support/call-groups-setup.ts";
import { connect, openQueue, queueOn } from "../support/jobs-setup.ts";
import type { Stores } from "../support/servers.ts";
import { eventually } from "../support/service.ts";
import { gate } from "../support/service-setup.ts";

test("a worker runs as many calls at once as it has slots, whatever the groups, and takes no job that it cannot begin", async () => {
  const { service, provider, queues, admit } = await startCallGroups(4);
  const gates = Array.from({ length: 19 }, gate);
  provider.respond(...gates.map(({ opened }) => ({ beforeHeaders: opened })));
  const calls = await admit(numbered("of the first group", 16));
  await eventually(() => provider.inFlight() === 4);
  calls.push(...(await admit(numbered("of the second group", 3))));
  for (const [answered, { open }] of gates.entries()) {
    const asked = Math.min(4 + answered, 19);
    await eventually(() => provider.requests.length >= asked && provider.inFlight() === asked - answered);
    expect(provider.requests).toHaveLength(asked);
    // The second group is taken when the last call of the first has begun and a slot is free.
    expect(await queues.backlog("chat")).toBe(answered <= 12 ? 3 : 0);
    open();
  }
  for (const { ended } of calls) expect((await ended).kind).toBe("final");
  expect(textsOf(provider)).toEqual([...numbered("of the first group", 16), ...numbered("of the second group", 3)]);
  await service.settled();
});

test("slots that calls of a group have freed are used while others of it stream on", async () => {
  const { service, provider, admit } = await startCallGroups(4);
  const end = gate();
  const endless = { beforeEvent: { 2: end.opened } };
  provider.respond(endless, endless, endless);
  const streams = await admit(numbered("stream", 3), { stream: true });
  await eventually(() => provider.inFlight() === 3);
  for (const text of numbered("short", 5)) {
    const [call] = await admit([text]);
    expect((await call?.ended)?.kind).toBe("final");
    expect(provider.inFlight()).toBe(3);
  }
  end.open();
  for (const { ended } of streams) expect((await ended).kind).toBe("final");
  await service.settled();
});

test("a call withdrawn from a waiting group never reaches the provider and costs nothing; the others run", async () => {
  const { service, provider, queues, reader, admit } = await startCallGroups(1);
  const { opened, open } = gate();
  provider.respond({ beforeHeaders: opened });
  const calls = await admit(["blocking"]);
  await provider.request(0);
  calls.push(...(await admit(["first", "withdrawn", "cancelled", "last"])));
  await eventually(async () => (await queues.backlog("chat")) === 4);
  const [, , withdrawn, cancelled] = calls;
  await reader.notify("disconnected", withdrawn?.requestId ?? "", 60_000);
  await reader.notify("cancelled", cancelled?.requestId ?? "", 60_000);
  open();
  const ends = await Promise.all(calls.map(({ ended }) => ended));
  expect(ends.map(({ kind }) => kind)).toEqual(["final", "final", "error", "error", "final"]);
  expect(textsOf(provider)).toEqual(["blocking", "first", "last"]);
  for (const call of [withdrawn, cancelled])
    expect(await call?.entry()).toMatchObject({
      costNanoUsd: 0n,
      request: { status: "cancelled", attempts: { length: 0 } },
    });
  await service.settled();
});

test("a call that cannot be read, or not be captured, does not take the others of its group along", async () => {
  const { stores, service, provider, queues, admit } = await startCallGroups(4);
  const customer = await service.account("1.00");
  const gates = Array.from({ length: 4 }, gate);
  provider.respond(...gates.map(({ opened }) => ({ beforeHeaders: opened })));
  const blocking = await admit(numbered("blocking", 4));
  await eventually(() => provider.inFlight() === 4);
  const answer = customer.post("/v1/chat/completions", {
    model: "local/chat",
    messages: [{ role: "user", content: "Hi" }],
  });
  await eventually(async () => (await queues.backlog("chat")) === 1);
  const [whole] = await admit(["whole"]);

  const queue = await openQueue(stores, "chat");
  const jobs = await queue.getJobs(["prioritized"], 0, -1, true);
  const [poisoned, healthy] = jobs.map(({ data }) => (data as { calls: { keyId: string }[] }).calls[0]);
  const tooLong = { ...healthy, requestId: "req_of_no_hold", keyId: "k".repeat(20_000) };
  await jobs[1]?.updateData({ v: 1, calls: [{ ...poisoned, tier: "gold" }, "nothing", tooLong, healthy] });
  await jobs[0]?.remove();
  for (const { open } of gates) open();

  expect((await whole?.ended)?.kind).toBe("final");
  const refused = await answer;
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
  await service.settled();
  expect(await customer.ledger("usage")).toMatchObject([{ amount_usd: "0.00", request: { status: "failed" } }]);
  expect(await customer.available()).toBe("1.00");
  for (const { ended } of blocking) expect((await ended).kind).toBe("final");
  await eventually(async () => (await queue.getActiveCount()) === 0);
});

/** Delivers the jobs that a worker has again, as if it had died: their locks are gone. */
async function deliverAgain(stores: Stores) {
  const connection = await connect(stores, "blocking");
  const options = { connection, prefix: "{chat}", skipVersionCheck: true };
  const queue = queueOn(connection, "chat");
  const watcher = new Worker("chat", null, { ...options, stalledInterval: 50, maxStalledCount: 1_000_000 });
  watcher.on("error", () => {});
  onTestFinished(async () => {
    await watcher.close();
    await queue.close();
  });
  void watcher.startStalledCheckTimer();
  return {
    /** The calls that each of the jobs still carries. */
    carried: async () => (await queue.getActive()).map(({ data }) => (data as { calls: object[] }).calls.length),
    steal: async () => {
      const ids = (await queue.getActive()).map(({ id = "" }) => id);
      const locks = ids.map((id) => `${queue.toKey(id)}:lock`);
      // The jobs of an earlier check that have no lock are moved by the next one, which is due at once.
      const changes = connection.multi().del(locks).sadd(queue.toKey("stalled"), ids);
      await changes.del(queue.toKey("stalled-check")).exec();
    },
  };
}

test.for([
  { when: "at once", renewed: false },
  { when: "after the job's lock was renewed", renewed: true },
])(
  "a half-done group is delivered again $when: its answer stays charged, once; the other call is an error and costs nothing",
  async ({ renewed }) => {
    const { stores, service, provider, admit } = await startCallGroups(4);
    const { carried, steal } = await deliverAgain(stores);
    const { opened, open } = gate();
    provider.respond({}, { beforeHeaders: opened });
    const [first, second] = await admit(["answered", "unanswered"]);
    expect((await first?.ended)?.kind).toBe("final");
    const entry = await first?.entry();
    expect(entry?.costNanoUsd).toBeGreaterThan(0n);
    await provider.request(1);
    // What a later delivery might take for lost is no longer in it.
    if (renewed) await eventually(async () => (await carried()).join() === "1");
    await steal();
    expect(await second?.ended).toMatchObject({ kind: "error" });
    await eventually(async () => (await carried()).length === 0);
    open();
    await service.settled();
    expect(await first?.entry()).toMatchObject({ costNanoUsd: entry?.costNanoUsd, request: entry?.request });
    // Only the API instance knows whether its caller has the answer of which the later delivery tells.
    const told = first?.frames.slice(1).map(({ outcome }) => outcome?.answerLost);
    expect(told).toEqual(renewed ? [] : [true]);
    expect(await second?.entry()).toMatchObject({ costNanoUsd: 0n, request: { status: "failed" } });
    expect(textsOf(provider)).toEqual(["answered", "unanswered"]);
  },
);
