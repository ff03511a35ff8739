import { isDeepStrictEqual } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { metricList } from "#platform/observability/metrics";
import { openMaintenance } from "../support/maintenance-setup.ts";
import { scrape } from "../support/metrics.ts";
import { mockError } from "../support/mock-openai.ts";
import { eventually } from "../support/service.ts";
import { asking, startWithProvider } from "../support/service-setup.ts";
import { askTopup, completed, payUrl } from "../support/topups-setup.ts";
import { startReceiver, status, webhookEnvironment } from "../support/webhook-receiver.ts";
import { webhookAccount } from "../support/webhooks-setup.ts";
import { buy, drawing, startPaid } from "../support/x402-setup.ts";

type Samples = Awaited<ReturnType<typeof scrape>>;

const model = "mock/chat";
const chat = "/v1/chat/completions";
const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");

/**
 * They change only where a worker captures after its instance was presumed dead (leases.test.ts), where an instance died with
 * responses (undelivered.test.ts) or a process with jobs (chaos/jobs.test.ts), some time after the failure of a line
 * (batches.test.ts), or where a provider takes batches (provider-batches.test.ts).
 */
const seldom = [
  "inference_late_entries_total",
  "inference_lost_responses_total",
  "inference_jobs_recovered_total",
  "inference_batch_lines_retried_total",
  "inference_provider_batch_lines_total",
];

/** True if a series of the metric has changed: a gauge exists, or a counter or histogram has counted. */
function moved(samples: Samples, name: keyof typeof metricList): boolean {
  const { type } = metricList[name];
  const counted = type === "histogram" ? `${name}_count` : name;
  return samples.labels(counted).some((labels) => type === "gauge" || (samples.value(counted, labels) ?? 0) > 0);
}

test("after a few calls every metric has moved", async () => {
  const world = await startPaid(await webhookEnvironment(), ["count-stored", "validate-batches"]);
  const { service, provider } = world;
  const customer = await service.account("5");
  const call = async (more: object = {}) => {
    const response = await customer.post(chat, { ...asking(model), ...more });
    await response.text();
    return response.status;
  };
  expect(await call()).toBe(200);
  expect(await call({ stream: true })).toBe(200);
  provider.respond(mockError(500, "broken"));
  expect(await call()).toBe(502);
  // More than any hold could cover.
  const usage = { prompt_tokens: 10, completion_tokens: 1_000_000, total_tokens: 1_000_010 };
  provider.respond({ usage });
  expect(await call({ max_tokens: 10 })).toBe(200);
  for (const outcome of ["miss", "hit"]) {
    const response = await customer.post(chat, asking(model), { headers: { "x-xm-cache": "true" } });
    await response.text();
    expect(response.headers.get("x-xm-cache")).toBe(outcome);
  }
  expect((await buy(world, service, drawing())).response.status).toBe(200);
  const { key, topup } = await askTopup(service, customer.id, "5.00");
  await payUrl(world.chain, await world.chain.wallet("5.00", { sol: 1n }), topup.solana_pay_url);
  await (await openMaintenance(world.stores)).run("credit-topups");
  expect(await completed(service, key, topup.id)).toMatchObject({ received_usd: "5.00" });
  const uploaded = await fetch(`${service.baseUrl}/v1/uploads`, {
    method: "POST",
    headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/octet-stream" },
    body: png,
  });
  expect(uploaded.status).toBe(200);
  const receiver = await startReceiver();
  receiver.answerNext(status(410));
  const hooked = await webhookAccount(service);
  await hooked.createEndpoint(receiver.url);
  await hooked.submitJob({}, model);
  await receiver.webhook(0);

  let opened: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    opened = resolve;
  });
  const batch = async () => {
    const requests = [{ custom_id: "one", body: asking(model) }];
    const { status } = await customer.post("/v1/batches", { endpoint: chat, completion_window: "24h", requests });
    expect(status).toBe(200);
  };
  await batch();
  await eventually(
    async () =>
      (await scrape(service.metrics.api)).value("inference_batch_lines_total", { outcome: "succeeded" }) === 1,
  );
  provider.respond({ beforeHeaders: gate });
  provider.respond({ beforeHeaders: gate });
  await batch();
  const open = call();
  const missing = await eventually(async () => {
    const [api, worker] = await Promise.all([scrape(service.metrics.api), scrape(service.metrics.worker)]);
    const names = Object.keys(metricList) as (keyof typeof metricList)[];
    const still = names.filter((name) => !seldom.includes(name) && !moved(api, name) && !moved(worker, name));
    // These follow the calls, or are counted now and then.
    const current = [
      api.value("inference_uploads", { state: "active" }),
      api.value("inference_endpoint_open_calls", { endpoint: chat }),
      api.value("inference_batch_lines_in_flight", { pool: "chat" }),
      Math.sign(api.value("inference_batch_oldest_seconds", { status: "in_progress" }) ?? 0),
    ];
    // Five calls of text have ended, and the image.
    const ended = [chat, "/v1/images/generations"].map((endpoint) =>
      api.value("inference_overhead_seconds_count", { endpoint }),
    );
    const isCurrent = isDeepStrictEqual(
      [current, ended],
      [
        [1, 1, 1, 1],
        [5, 1],
      ],
    );
    return still.length === 0 && isCurrent ? { api, worker } : undefined;
  });
  opened();
  expect(await open).toBe(200);

  const { api, worker } = missing;
  expect(api.value("inference_ledger_difference_usd")).toBe(0);
  expect(api.value("inference_ledger_faults")).toBe(0);
  expect(api.value("inference_endpoint_open_calls", { endpoint: chat })).toBe(1);
  expect(api.value("inference_jobs_submitted_total", { endpoint: chat })).toBe(1);
  expect(api.value("inference_batches_created_total", { kind: "openai" })).toBe(2);
  expect(api.value("inference_batches_ended_total", { status: "completed" })).toBe(1);
  expect(api.value("inference_batch_lines_total", { outcome: "succeeded" })).toBe(1);
  expect(api.value("inference_batch_lines_in_flight", { pool: "chat" })).toBe(1);
  expect(api.value("inference_batch_oldest_seconds", { status: "in_progress" })).toBeGreaterThan(0);
  expect(api.value("inference_cache_calls_total", { outcome: "hit" })).toBe(1);
  expect(api.value("inference_cache_saved_nanousd_total")).toBeGreaterThan(0);
  expect(worker.value("inference_jobs_ended_total", { status: "completed" })).toBe(1);
  const paid = (outcome: string) => api.value("inference_x402_payments_total", { outcome });
  expect([paid("quoted"), paid("settled"), paid("refused")]).toEqual([1, 1, undefined]);
  const attempts = (outcome: string) =>
    worker.value("inference_upstream_attempts_total", { upstream: "mock", model, outcome });
  // Four calls, the job and a line.
  expect([attempts("succeeded"), attempts("failed")]).toEqual([6, 1]);
  expect(worker.value("inference_tokens_total", { model, kind: "output" })).toBeGreaterThan(1_000_000);
  expect(worker.value("inference_charged_nanousd_total", { model: "mock/image" })).toBe(40_000_000);
  expect(worker.value("inference_shortfalls_total")).toBe(1);
  expect(worker.value("inference_shortfall_nanousd_total")).toBeGreaterThan(1_900_000_000);
  // Four successful calls, one that failed at its provider, and the image. Nobody waited for the others.
  const overhead = (endpoint: string) => api.value("inference_overhead_seconds_count", { endpoint });
  expect([overhead(chat), overhead("/v1/images/generations")]).toEqual([5, 1]);
  const sum = (name: string) => api.value(`${name}_sum`, { endpoint: chat }) ?? Number.NaN;
  expect(sum("inference_overhead_seconds")).toBeLessThan(sum("inference_call_duration_seconds"));
});

test("hundreds of calls with random models and keys add no series", async () => {
  const { service, provider } = await startWithProvider();
  onTestFinished(() => provider.close());
  const customer = await service.account("5");
  const unknown = ["no-such", "openai/", 'local/chat"}', "\n", "a".repeat(500)];
  const send = async (at: number) => {
    const headers = at % 2 === 0 ? {} : { authorization: `Bearer sk-random-${at}` };
    const body = asking(`${unknown[at % unknown.length]}${at}`);
    const response = await customer.post(at % 3 === 0 ? "/v1/messages" : chat, body, { headers });
    await response.text();
    expect(response.status).toBeGreaterThanOrEqual(400);
  };
  const series = async () => {
    const all = await Promise.all([scrape(service.metrics.api), scrape(service.metrics.worker)]);
    return all.flatMap((samples) =>
      samples.names.flatMap((name) => samples.labels(name).map((labels) => `${name} ${JSON.stringify(labels)}`)),
    );
  };
  const sendAll = async (from: number, to: number) => {
    for (let at = from; at < to; at += 100)
      await Promise.all(Array.from({ length: Math.min(100, to - at) }, (_, i) => send(at + i)));
  };
  await sendAll(0, 30);
  const calls = () => scrape(service.metrics.api).then((samples) => samples.labels("inference_calls_total"));
  const before = await calls();
  await sendAll(30, 330);
  expect(await calls()).toEqual(before);
  expect(new Set(before.map((labels) => labels["model"]))).toEqual(new Set(["other"]));
  for (const each of await series()) expect(each).not.toMatch(/no-such|sk-random|aaaa|acct_|key_|req_/);
});
