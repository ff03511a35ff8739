import { EventEmitter } from "node:events";
import type { Response } from "express";
import { expect, test } from "vitest";
import type { JobView } from "#detached-calls";
import { waitForEnd } from "../../api/routes/job-actions.ts";
import { createManualClock } from "../support/manual-clock.ts";

test("a job is not looked at any more once its caller has disconnected", async () => {
  const clock = createManualClock();
  const res = Object.assign(new EventEmitter(), { closed: false }) as unknown as Response & { closed: boolean };
  const running = { status: "in_progress" } as JobView;
  let looks = 0;
  const find = async () => {
    looks++;
    res.closed = looks === 2;
    return running;
  };
  const waiting = waitForEnd(
    { clock, responseReaders: { wait: () => {} } },
    { account: "acct_1", res, waitMs: 60_000 },
    find,
  );
  await Promise.resolve();
  clock.advance(1_000);
  expect(await waiting).toBe(running);
  expect([looks, clock.pending()]).toEqual([2, 0]);
});
