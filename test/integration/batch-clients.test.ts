import Anthropic from "@anthropic-ai/sdk";
import { expect, test } from "vitest";
import { later, openBatches } from "../support/batches-setup.ts";
import { movableClock } from "../support/movable-clock.ts";
import { ofFile } from "../support/of-file.ts";
import { runDemo } from "../support/run-demo.ts";
import { testStores } from "../support/servers.ts";
import { type Customer, startService } from "../support/service.ts";

const running = ofFile(
  async (onEnd) => {
    const stores = await testStores();
    const { clock, advance } = movableClock();
    const env = { NATIVE_FORMATS_ANY_MODEL: "true" };
    const service = await startService(stores, { clock, onEnd, env, often: ["validate-batches"] });
    return { service, opened: await openBatches(stores, { clock, onEnd }), advance, now: () => clock.now() };
  },
  () => {},
);

/** Reads a batch until it fits. An instance looks for batches twice a second. */
async function until<Batch extends { readonly id: string }>(
  { id: account }: Customer,
  read: () => Promise<Batch>,
  fits: (batch: Batch) => unknown,
): Promise<Batch> {
  const { id: _id } = await read();
  const fitting = async () => {
    const batch = await read();
    return fits(batch) ? batch : undefined;
  };
  return later(running, { account, _id }, fitting, 500);
}

interface ResultLine {
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly body: { readonly object?: string; readonly error?: object };
  };
  readonly error: null;
}
const linesOf = (text: string) =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as ResultLine)
    .toSorted((a, b) => a.custom_id.localeCompare(b.custom_id));

const asking = (content: string) => ({ model: "local/chat", messages: [{ role: "user" as const, content }] });
const chat = "/v1/chat/completions" as const;

const endpoints = [
  [chat, asking("Hello."), { object: "chat.completion" }, true],
  ["/v1/embeddings", { model: "local/embeddings", input: "Hello." }, { object: "list" }, true],
  ["/v1/responses", { model: "local/chat", input: "Hello." }, { object: "response" }, true],
  ["/v1/completions", { model: "local/chat", prompt: "Hello." }, { object: "text_completion" }, true],
  ["/v1/moderations", { model: "local/moderation", input: "Hello." }, { results: [{ flagged: false }] }, false],
  ["/v1/images/generations", { model: "local/image", prompt: "A lighthouse", size: "256x256" }, { data: [{}] }, false],
] as const;

test.for(endpoints)(
  "OpenAI's client: a batch of %s from its file to its results",
  async ([endpoint, body, answer, hasTokens]) => {
    const customer = await running.service.account("1");
    const { files, batches } = customer.openai;
    const lines = ["a", "b", "c"].map((id) => JSON.stringify({ custom_id: id, method: "POST", url: endpoint, body }));
    const input = await files.create({ file: new File([lines.join("\n")], "in.jsonl"), purpose: "batch" });
    const { id } = await batches.create({
      input_file_id: input.id,
      endpoint,
      completion_window: "24h",
      metadata: { order: "17" },
    });
    const batch = await until(
      customer,
      () => batches.retrieve(id),
      (now) => now.completed_at,
    );
    expect(batch).toMatchObject({
      object: "batch",
      status: "completed",
      model: body.model,
      errors: null,
      metadata: { order: "17" },
      request_counts: { total: 3, completed: 3, failed: 0 },
      error_file_id: null,
    });
    expect((batch.usage?.total_tokens ?? 0) > 0).toBe(hasTokens);
    const output = await files.content(batch.output_file_id ?? "");
    expect(linesOf(await output.text())).toMatchObject(
      ["a", "b", "c"].map((custom_id) => ({
        custom_id,
        response: { status_code: 200, body: answer },
        error: null,
      })),
    );
    await expect(
      batches.create({ input_file_id: batch.output_file_id ?? "", endpoint, completion_window: "24h" }),
    ).rejects.toMatchObject({ status: 400, param: "input_file_id" });
    const listed = await Array.fromAsync(batches.list({ limit: 1 }));
    expect(listed.map((each) => each.id)).toEqual([id]);
    const stored = await Array.fromAsync(files.list({ purpose: "batch_output" }));
    expect(stored.map((file) => file.id)).toEqual([batch.output_file_id]);
    await running.service.settled();
  },
);

test("OpenAI's client: what fails is in the error file, and a file that is refused fails with its lines named", async () => {
  const customer = await running.service.account("1");
  const { files, batches } = customer.openai;
  const run = async (bodies: readonly object[]) => {
    const lines = bodies.map((body, at) => JSON.stringify({ custom_id: `r${at}`, method: "POST", url: chat, body }));
    const { id: input_file_id } = await files.create({
      file: new File([lines.join("\n")], "in.jsonl"),
      purpose: "batch",
    });
    const { id } = await batches.create({ input_file_id, endpoint: chat, completion_window: "24h" });
    return until(
      customer,
      () => batches.retrieve(id),
      (now) => now.completed_at ?? now.failed_at,
    );
  };
  const mixed = await run([asking("Hello."), asking("error:400")]);
  expect(mixed).toMatchObject({ status: "completed", request_counts: { total: 2, completed: 1, failed: 1 } });
  const failed = linesOf(await (await files.content(mixed.error_file_id ?? "")).text());
  expect(failed).toMatchObject([{ custom_id: "r1", response: { status_code: 400, body: { error: {} } }, error: null }]);
  const refused = await run([asking("Hello."), { ...asking("Hello."), stream: true }]);
  expect(refused).toMatchObject({
    status: "failed",
    output_file_id: null,
    errors: { data: [{ code: "invalid_value", param: "body.stream", line: 2 }] },
  });
  await running.service.settled();
});

test("OpenAI's client: a batch is cancelled", async () => {
  const customer = await running.service.account("1");
  const { files, batches } = customer.openai;
  const lines = Array.from({ length: 200 }, (_, n) =>
    JSON.stringify({ custom_id: `${n}`, method: "POST", url: chat, body: asking("slow:5000") }),
  );
  const { id: input_file_id } = await files.create({
    file: new File([lines.join("\n")], "in.jsonl"),
    purpose: "batch",
  });
  const { id } = await batches.create({ input_file_id, endpoint: chat, completion_window: "24h" });
  const read = () => batches.retrieve(id);
  await until(customer, read, ({ status }) => status === "in_progress");
  expect((await batches.cancel(id)).status).toBe("cancelling");
  const batch = await until(customer, read, (now) => now.cancelled_at);
  const { completed = 0, failed = 0 } = batch.request_counts ?? {};
  expect([batch.status, completed + failed, failed > 0]).toEqual(["cancelled", 200, true]);
  const notRun = (await (await files.content(batch.error_file_id ?? "")).text()).trimEnd().split("\n");
  expect(notRun).toHaveLength(failed);
  expect(JSON.parse(notRun[0] ?? "")).toMatchObject({ response: null, error: { code: "batch_cancelled" } });
  await running.service.settled();
});

test("Anthropic's client: a batch of messages from its requests to its results", async () => {
  const { service } = running;
  const customer = await service.account("1");
  const { batches } = new Anthropic({ apiKey: customer.key, baseURL: service.baseUrl, maxRetries: 0 }).messages;
  const params = (content: string, model = "local/chat") => ({ ...asking(content), model, max_tokens: 50 });
  const created = await batches.create({
    requests: [
      { custom_id: "first", params: params("Hello.") },
      { custom_id: "second", params: params("error:400") },
      { custom_id: "third", params: params("Hello.", "none/none") },
    ],
  });
  expect(created).toMatchObject({ type: "message_batch", processing_status: "in_progress", results_url: null });
  await expect(batches.results(created.id)).rejects.toThrow(/results/);
  const batch = await until(
    customer,
    () => batches.retrieve(created.id),
    ({ processing_status: status }) => status === "ended",
  );
  expect(batch.request_counts).toEqual({ processing: 0, succeeded: 1, errored: 2, canceled: 0, expired: 0 });
  const results = await Array.fromAsync(await batches.results(created.id));
  expect(results.toSorted((a, b) => a.custom_id.localeCompare(b.custom_id))).toMatchObject([
    { custom_id: "first", result: { type: "succeeded", message: { type: "message", role: "assistant" } } },
    { custom_id: "second", result: { type: "errored", error: { error: { type: "invalid_request_error" } } } },
    { custom_id: "third", result: { type: "errored", error: { error: { type: "not_found_error" } } } },
  ]);
  expect((await Array.fromAsync(batches.list())).map(({ id }) => id)).toEqual([created.id]);
  expect(await batches.delete(created.id)).toEqual({ id: created.id, type: "message_batch_deleted" });
  await expect(batches.retrieve(created.id)).rejects.toMatchObject({ status: 404 });
  await service.settled();
});

test("npm run demo:batch follows a batch to its end, and tells its cost and the live price", async () => {
  const { service } = running;
  const customer = await service.account("1");
  const stdout = await runDemo("batch", { baseUrl: service.baseUrl, customer, args: ["40"] });
  const [batch] = (await customer.openai.batches.list()).data;
  expect(batch).toMatchObject({ status: "completed", request_counts: { total: 40, completed: 40 } });
  const { x_cost_usd: cost } = batch as unknown as { x_cost_usd: string };
  expect(stdout).toContain(`${batch?.id}, 40 calls of local/chat\n`);
  expect(stdout).toContain(`[${"#".repeat(40)}] 40 of 40, 0 failed, completed\n`);
  expect(stdout).toContain(`\ncost       ${cost} USD; `);
  // The local model has no discount.
  expect(stdout).toContain(`\nlive price ${cost} USD; `);
  await service.settled();
});
