import { expect, test } from "vitest";
import { jobIdOf, renderJob } from "../../shared/detached-calls/index.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { startIdempotency, storedCall } from "../support/idempotency-setup.ts";
import { paidCall } from "../support/jobs-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { captureOf, held, holdOf } from "../support/money-setup.ts";

/** The store of detached calls, and an account whose jobs it has. */
async function start() {
  const clock = createManualClock();
  const { money, detachedCalls, account, stored } = await startIdempotency(clock);
  async function submit() {
    const requestId = newRequestId();
    const payload = paidCall(requestId, { account, acceptedAt: clock.now(), deadlineAt: clock.now() + 120_000 });
    const job = { job: "chat" as const, payload, metadata: {}, publicUrl: "http://a" };
    await detachedCalls.create({ ...job, queuedUntil: clock.now() + 60_000 });
    return requestId;
  }
  const jobOf = async (requestId: string) => {
    const view = await detachedCalls.find(account, requestId);
    return view && renderJob(view);
  };
  return { clock, money, detachedCalls, account, stored, submit, jobOf };
}

test("a start that MongoDB carries out late does not open a job that has ended", async () => {
  const { money, detachedCalls, account, submit, jobOf } = await start();
  const requestId = await submit();
  const hold = await held(money, holdOf(account, 1_000n, { requestId }));
  expect(await detachedCalls.start(account, requestId, "delivery-1")).toMatchObject({ kind: "started" });
  // The first write of this delivery was not confirmed, so it is repeated.
  expect(await detachedCalls.start(account, requestId, "delivery-1")).toMatchObject({ kind: "started" });
  await detachedCalls.storeAnswer(account, requestId, storedCall());
  await money.charge(captureOf(hold, 600n, { status: "succeeded" }));
  expect(await detachedCalls.endIfCaptured(account, requestId)).toBe(true);
  const ended = await jobOf(requestId);
  expect(ended).toMatchObject({ id: jobIdOf(requestId), status: "completed" });
  expect(await detachedCalls.start(account, requestId, "delivery-1")).toEqual({ kind: "ended" });
  expect(await jobOf(requestId)).toEqual(ended);
});

test("a job that failed without a reason has an error all the same", async () => {
  const { money, detachedCalls, account, submit, jobOf } = await start();
  for (const [status, expected, code] of [
    ["failed", "failed", "no_capacity"],
    ["cancelled", "cancelled", "conflict"],
  ] as const) {
    const requestId = await submit();
    const hold = await held(money, holdOf(account, 1_000n, { requestId }));
    await money.charge(captureOf(hold, 0n, { status }));
    await detachedCalls.endIfCaptured(account, requestId);
    expect(await jobOf(requestId)).toMatchObject({ status: expected, error: { code }, cost_usd: "0.00" });
  }
});

test("maintenance sees all jobs that are due, however many there are", async () => {
  const { clock, detachedCalls, submit } = await start();
  const ids = await Promise.all(Array.from({ length: 501 }, submit));
  expect(await Array.fromAsync(detachedCalls.due())).toEqual([]);
  clock.advance(15_000);
  const due = await Array.fromAsync(detachedCalls.due());
  expect(due.map(({ requestId }) => requestId).toSorted()).toEqual(ids.toSorted());
});
