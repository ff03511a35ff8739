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

/** A worker whose caller's API instance is gone for good. */
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

test.each([
  ["without a key: the cost of an answer that cannot be fetched is refunded", {}, free(1_000_000n)],
  ["with a key: the answer is stored, so its cost stands", { idempotencyKeyId: "a-key" }, free(999_400n)],
])("a call that succeeded and is delivered again to a worker that cannot run it, %s", async (_, fields, expected) => {
  const { deps, money, account, decide } = await startAlone();
  const requestId = newRequestId();
  await decide(requestId, 600n);
  await endWithoutRunning(
    deps,
    paidCall(requestId, { account, held: "1000", ...fields }),
    noCapacity("It could not be run."),
  );
  expect(await balance(money, account)).toEqual(expected);
});
