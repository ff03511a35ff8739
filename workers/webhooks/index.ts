/**
 * Sends webhooks. A queue job of the pool `webhooks` drains one receiver: it claims what is due in MongoDB, one delivery
 * at a time, and stores each attempt. A worker that dies leaves claims that end by themselves, so a delivery is sent at
 * least once, always under the same `webhook-id`.
 *
 * A receiver gets at most 10 attempts at once, after one has succeeded; until then, and after a failure, one.
 */

import type { Clock } from "#platform/clock";
import { sleep } from "#platform/clock";
import { retry } from "#platform/concurrency/retry";
import type { Config } from "#platform/config";
import type { Metrics } from "#platform/observability/metrics";
import { createReceiverAddresses } from "#platform/receiver-addresses";
import type { Secrets } from "#secrets";
import type { ClaimedDelivery, Receiver, Webhooks } from "#webhooks";
import { createSafePost } from "../providers/http/safe-fetch.ts";
import { attemptDelivery } from "./attempt.ts";
import { createPermits } from "./permits.ts";

const maxPerReceiver = 10;
/** While attempts at a receiver run, deliveries that became due meanwhile are looked for this often. */
const lookMs = 500;
const storeBackoff = { firstMs: 100, maxMs: 2_000 };
/** Less than a claim lasts: afterwards the attempt is repeated. */
const storeMs = 20_000;

export function createWebhookSender(deps: {
  config: Config;
  sending: Webhooks["sending"];
  secrets: Pick<Secrets, "open">;
  metrics: Metrics;
  clock: Clock;
  /** Aborts when this process shuts down. */
  ending: AbortSignal;
}) {
  const { config, sending, secrets, metrics, clock, ending } = deps;
  const receivers = createReceiverAddresses(config);
  const safePost = createSafePost({ clock, receivers, proxyUrl: config.WEBHOOK_PROXY_URL });
  const permits = createPermits({ total: config.WORKER_CONCURRENCY_WEBHOOKS });
  const countAttempt = metrics.counter("inference_webhook_attempts_total");
  const countDisabled = metrics.counter("inference_webhook_endpoints_disabled_total");
  const observeSeconds = metrics.histogram("inference_webhook_attempt_seconds");

  /** Returns true if the receiver has the delivery. */
  async function send(delivery: ClaimedDelivery, release: () => void): Promise<boolean> {
    const { attempt, outcome } = await attemptDelivery(
      { safePost, secrets, clock, random: Math.random },
      delivery,
    ).finally(release);
    countAttempt({ outcome: outcome.kind });
    observeSeconds({}, attempt.durationMs / 1_000);
    const until = clock.now() + storeMs;
    const disabled = await retry({ clock, backoff: storeBackoff, retryIf: () => clock.now() < until }, () =>
      sending.storeAttempt(delivery, attempt, outcome),
    );
    if (disabled) countDisabled({ reason: disabled });
    return outcome.kind === "delivered";
  }

  return {
    /**
     * Sends what is due for a receiver, until nothing is, or until this process shuts down. Rejects, once its attempts have
     * ended, if MongoDB is unavailable or the secrets cannot be opened.
     */
    async drain(receiver: Receiver): Promise<void> {
      const found = await sending.find(receiver);
      if (!found) return;
      const { account } = receiver;
      const host = new URL(found.url).hostname;
      let { isFailing } = found;
      let width = 1;
      let failure: { readonly error: unknown } | undefined;
      const running = new Set<Promise<void>>();

      function start(delivery: ClaimedDelivery, release: () => void): void {
        const ended = send(delivery, release).then(
          (succeeded) => {
            isFailing = !succeeded;
            width = succeeded ? maxPerReceiver : 1;
          },
          (error: unknown) => {
            failure ??= { error };
          },
        );
        running.add(ended);
        void ended.then(() => running.delete(ended));
      }

      /** Returns false if nothing is due. */
      async function startNext(): Promise<boolean> {
        const release = await permits.acquire({ account, host, isFailing }, ending);
        try {
          const [delivery] = await sending.claim(receiver, 1);
          if (!delivery) release();
          else start(delivery, release);
          return delivery !== undefined;
        } catch (error) {
          release();
          throw error;
        }
      }

      try {
        while (!ending.aborted && !failure) {
          if (running.size >= width) await Promise.race(running);
          else if (await startNext()) continue;
          else if (running.size === 0) break;
          else await Promise.race([...running, sleep(clock, lookMs)]);
        }
      } catch (error) {
        if (!ending.aborted) failure ??= { error };
      }
      await Promise.all(running);
      if (failure) throw failure.error;
    },
    load: () => ({ running: permits.running(), waiting: permits.waiting() }),
    close: () => safePost.close(),
  };
}

export type WebhookSender = ReturnType<typeof createWebhookSender>;
