import { spawn } from "node:child_process";
import { once } from "node:events";
import { systemClock } from "#platform/clock";
import { type Config, environment } from "#platform/config";
import { createLogger } from "#platform/logger";
import { type Span, startTracing, type Tracing } from "#platform/observability/tracing";

/**
 * Processor time of a call's spans, both processes together: created, ended, encoded and sent. `npm run bench:tracing`
 */
const calls = 40_000;
const receiver = `require("node:http").createServer((req, res) => req.resume().on("end", () => res.end()))
  .listen(0, "127.0.0.1", function () { console.log(this.address().port); });`;
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const defaults = (name: keyof Config) => environment.shape[name].parse(undefined) as never;

const open = (ratio: number, port: string): Promise<Tracing | undefined> =>
  startTracing(
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: ratio < 0 ? undefined : `http://127.0.0.1:${port}`,
      OTEL_EXPORTER_OTLP_HEADERS: undefined,
      OTEL_SERVICE_NAME: undefined,
      OTEL_RESOURCE_ATTRIBUTES: undefined,
      OTEL_TRACES_SAMPLER: "traceidratio",
      OTEL_TRACES_SAMPLER_ARG: ratio,
      OTEL_BSP_SCHEDULE_DELAY: defaults("OTEL_BSP_SCHEDULE_DELAY"),
      OTEL_CAPTURE_CONTENT: defaults("OTEL_CAPTURE_CONTENT"),
    },
    { process: "api", clock: systemClock, log: createLogger("bench", "warn") },
  );

/** The spans that `api/call-trace.ts` and `workers/tracing` create for a chat call with one attempt over HTTP. */
function traceCall(tracing: Tracing | undefined): void {
  const call = tracing?.begin("POST /v1/chat/completions", {
    kind: "server",
    at: systemClock.now(),
    traceparent,
    attributes: { "http.request.method": "POST", "http.route": "/v1/chat/completions", id: "req_1", account: "acct_1" },
  });
  const admission = call?.child("admission");
  admission?.event("slot");
  admission?.event("body");
  admission?.end();
  const received = call && tracing?.join("process chat", { kind: "consumer", traceparent: call.traceparent });
  if (received?.isSampled) traceDelivery(tracing, received, call?.traceparent);
  received?.end();
  call?.set({ "http.response.status_code": 200, model: "openai/gpt-4.1-mini", stream: true });
  call?.event("first event");
  call?.end();
}

function traceDelivery(tracing: Tracing | undefined, received: Span, traceparent: string | undefined): void {
  tracing?.join("queue chat", { traceparent })?.end();
  const attempt = received.child("chat gpt-4.1-mini", {
    kind: "client",
    attributes: { operation: "chat", provider: "openai", model: "gpt-4.1-mini", stream: true, temperature: 1, cap: 99 },
  });
  const http = attempt.child("POST", {
    kind: "client",
    attributes: {
      method: "POST",
      address: "api.openai.com",
      port: 443,
      url: "https://api.openai.com/v1/chat/completions",
    },
  });
  http.set({ "http.response.status_code": 200 });
  http.end();
  attempt.set({ id: "chatcmpl-1", response: "gpt-4.1-mini", reasons: ["stop"], first: 0.2, input: 9, output: 8 });
  attempt.event("first chunk");
  attempt.end();
  received.child("capture").end();
  received.set({ status: "succeeded", cost: 25_000 });
}

const child = spawn(process.execPath, ["-e", receiver], { stdio: ["ignore", "pipe", "inherit"] });
const [port] = (await once(child.stdout, "data")) as [Buffer];
for (const [name, ratio] of [
  ["off", -1],
  ["ratio 0", 0],
  ["ratio 0.1", 0.1],
  ["ratio 1", 1],
] as const) {
  const tracing = await open(ratio, String(port).trim());
  let from = process.cpuUsage();
  for (let i = -calls / 4; i < calls; i++) {
    if (i === 0) from = process.cpuUsage();
    traceCall(tracing);
    // Stay below the queue's limit, so that every span is sent.
    if (i % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await tracing?.close();
  const { user, system } = process.cpuUsage(from);
  process.stdout.write(`${name.padEnd(10)} ${((user + system) / calls).toFixed(1)} microseconds a call\n`);
}
child.kill();
