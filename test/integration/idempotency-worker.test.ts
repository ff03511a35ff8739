import { expect, onTestFinished, test } from "vitest";
import { loadCatalog } from "../../shared/catalog/index.ts";
import { noCapacity } from "../../shared/errors.ts";
import { createCancellations } from "../../shared/jobs/index.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createCounting } from "../../workers/counting/index.ts";
import { endWithoutRunning } from "../../workers/run-call.ts";
import { createRunning } from "../../workers/running.ts";
import { createUpstreams } from "../../workers/upstreams/index.ts";
import { startIdempotency } from "../support/idempotency-setup.ts";
import { connect, log, openWriter, paidCall } from "../support/jobs-setup.ts";
import { balance, createMovableClock, free } from "../support/money-setup.ts";

/** A worker whose caller's API instance is permanently gone. */
async function startAlone() {
  const clock = createMovableClock();
  const bank = await startIdempotency(clock);
  const { redis, replies } = await openWriter(bank.stores, clock);
  const cancellations = createCancellations({
    subscriber: await connect(bank.stores, "blocking"),
    commands: redis,
    clock,
    log,
  });
  const catalog = loadCatalog(undefined);
  const counting = createCounting({ clock, log });
  onTestFinished(() => counting.close());
  const upstreams = createUpstreams({ catalog, env: {}, clock, counting });
  onTestFinished(() => upstreams.close());
  const running = createRunning({ cancellations, replies, clock, log });
  clock.later(60_000);
  const { money, files, idempotency, responses } = bank;
  const stores = { money, files, idempotency, responses, replies };
  return { ...bank, deps: { catalog, upstreams, ...stores, cancellations, running, counting, clock, log } };
}

test("a call that succeeded and is delivered again to a worker that cannot run it, with a key: its charge is final", async () => {
  const { deps, money, account, charge } = await startAlone();
  const requestId = newRequestId();
  await charge(requestId, 600n);
  await endWithoutRunning(
    deps,
    paidCall(requestId, { account, held: "1000", idempotencyKeyId: "a-key" }),
    noCapacity("It could not be run."),
  );
  expect(await balance(money, account)).toEqual(free(999_400n));
});
