import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import {
  at,
  type Event,
  ended,
  errorOf,
  held,
  idsOf,
  native,
  numbers,
  path,
  read,
  requestOf,
  textOf,
} from "../support/background-setup.ts";
import { openCollection } from "../support/chaos-setup.ts";
import {
  formatsService,
  geminiProvider,
  local,
  messagesProvider,
  relay,
  responsesProvider,
  sent,
} from "../support/formats-service.ts";
import { mockError } from "../support/mock-openai.ts";
import type { Customer } from "../support/service.ts";
import { entryOf, nanoUsd } from "../support/service-setup.ts";

const running = formatsService({ NATIVE_FORMATS_ANY_MODEL: "true", WORKER_CONCURRENCY_CHAT: "1" });
const get = (customer: Customer, rest: string, method?: string) => requestOf(running.service, customer, rest, method);

async function expectNotContinued(customer: Customer, model: string, id: string): Promise<void> {
  const refused = await errorOf(customer.post(path, { model, input: "x", previous_response_id: id }));
  expect(refused).toEqual([400, "invalid_value", "previous_response_id"]);
}

/** The local model, one that speaks the format, one that speaks only chat, and those of Anthropic and Google. */
const targets = [local, responsesProvider, relay, messagesProvider, geminiProvider];
describe.each(targets)("$name", ({ model, says, ...target }) => {
  test("a response is polled, is a job, can be continued, and costs what a synchronous one does", async () => {
    const customer = await running.service.account("1");
    const { responses } = customer.openai;
    const asked = { model, input: "Hello there", instructions: "Be brief." };
    const created = await responses.create({ ...asked, background: true, metadata: { order: "17" } });
    expect(created).toMatchObject({
      id: expect.stringMatching(/^resp_\w{24}$/) as string,
      status: "queued",
      background: true,
      output: [],
      error: null,
      instructions: "Be brief.",
      metadata: { order: "17" },
    });
    const response = await ended(customer.openai, created.id);
    expect(response).toMatchObject({ id: created.id, status: "completed", background: true, output_text: says });
    expect(sent(running, { model, says, ...target })).not.toHaveProperty("background");

    const job = created.id.replace("resp_", "job_");
    const jobs = await fetch(`${running.service.baseUrl}/v1/jobs`, {
      headers: { authorization: `Bearer ${customer.key}` },
    });
    expect(await jobs.json()).toMatchObject({ data: [{ id: job, endpoint: path, status: "completed" }] });
    const result = await fetch(`${running.service.baseUrl}/v1/jobs/${job}/result`, {
      headers: { authorization: `Bearer ${customer.key}` },
    });
    expect(await result.json()).toEqual(JSON.parse(await (await get(customer, created.id)).text()));
    const next = await responses.create({ model, input: "Again", previous_response_id: created.id });
    expect(next).toMatchObject({ previous_response_id: created.id, status: "completed" });
    const items = await responses.inputItems.list(created.id);
    expect(items.data).toMatchObject([{ role: "user", content: [{ text: "Hello there" }] }]);

    await running.service.settled();
    const synchronous = await responses.create(asked);
    await running.service.settled();
    const [cost, ofSynchronous] = await Promise.all(
      [created.id.replace("resp_", "req_"), synchronous._request_id].map(async (id) =>
        nanoUsd((await entryOf(running.service, id)).amount_usd),
      ),
    );
    expect(cost).toBe(ofSynchronous);
    expect(cost).toBeLessThan(0n);
  });

  test("its stream is read again from each event, at two API instances at once", async () => {
    const customer = await running.service.account("1");
    const stream = await customer.openai.responses.create({
      model,
      input: "Hello there",
      background: true,
      stream: true,
    });
    const events = (await Array.fromAsync(stream)) as Event[];
    expect(numbers(events)).toEqual(events.map((_, n) => n));
    const types = events.map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual(["response.created", "response.queued", "response.in_progress"]);
    expect([types.at(-1), idsOf(events).size]).toEqual(["response.completed", 1]);
    const [id = ""] = idsOf(events);
    const final = events.at(-1) as OpenAI.Responses.ResponseCompletedEvent;
    const { output_text, _request_id, ...stored } = await customer.openai.responses.retrieve(id);
    expect([output_text, final.response]).toEqual([says, stored]);
    const deltas = events.flatMap((event) => (event.type === "response.output_text.delta" ? [event.delta] : []));
    expect(deltas.join("")).toBe(says);

    const instances = [running.service, await running.another()].map((client) => at(client, customer));
    const readings = [undefined, ...numbers(events)].flatMap((n) =>
      instances.map(async (client) => [n, await read(client, id, n)] as const),
    );
    for (const [n, again] of await Promise.all(readings))
      expect(again).toEqual(events.slice(n === undefined ? 0 : n + 1));
  });
});

describe.each([native, relay])("while it runs, $name", ({ model }) => {
  test("readers at two instances get every event once, whatever the creator does", async () => {
    const customer = await running.service.account("1");
    const gate = held(6);
    running.provider.respond(gate.answer);
    const creating = new AbortController();
    const stream = await customer.openai.responses.create(
      { model, input: "Hello there", background: true, stream: true },
      { signal: creating.signal },
    );
    const seen: Event[] = [];
    for await (const event of stream) {
      seen.push(event as Event);
      if (event.type === "response.output_text.delta") break;
    }
    creating.abort();
    const [id = ""] = idsOf(seen);
    expect(await customer.openai.responses.retrieve(id)).toMatchObject({ id, status: "in_progress", output: [] });
    expect(await errorOf(get(customer, id, "DELETE"))).toEqual([409, "conflict", null]);
    expect(await errorOf(get(customer, `${id}/input_items`))).toEqual([409, "conflict", null]);

    const instances = [running.service, await running.another()].map((client) => at(client, customer));
    const last = seen.at(-1)?.sequence_number ?? 0;
    const from = [undefined, ...Array.from({ length: last + 3 }, (_, n) => n)];
    const streams = await Promise.all(
      from.flatMap((n) =>
        instances.map(async (client) => {
          const reading = await client.responses.retrieve(id, {
            stream: true,
            ...(n !== undefined && { starting_after: n }),
          });
          return { n, reading };
        }),
      ),
    );
    gate.open();
    const all = await read(customer.openai, id);
    expect(all.at(-1)).toMatchObject({ type: "response.completed" });
    expect(numbers(all)).toEqual(all.map((_, n) => n));
    expect(all.slice(0, seen.length)).toEqual(seen);
    for (const { n, reading } of streams)
      expect(await Array.fromAsync(reading)).toEqual(all.slice(n === undefined ? 0 : n + 1));
    await running.service.settled();
  });

  const cancel = (customer: Customer, id: string) => customer.openai.responses.cancel(id);
  const passTime = async (customer: Customer, id: string) => {
    running.advance(100_000);
    await ended(customer.openai, id);
    // It has ended, so this only reads it.
    return cancel(customer, id);
  };
  test.for([
    ["by a request", {}, cancel],
    ["by x-xm-cancel-after", { "x-xm-cancel-after": "100" }, passTime],
  ] as const)(
    "it is cancelled %s: its output so far is kept and charged, and its provider is left",
    async ([, headers, end]) => {
      const customer = await running.service.account("1");
      const gate = held(7);
      running.provider.respond(gate.answer);
      const stream = await customer.openai.responses.create(
        { model, input: "Hello there", background: true, stream: true },
        { headers },
      );
      const events: Event[] = [];
      let cancelling: Promise<OpenAI.Responses.Response> | undefined;
      for await (const event of stream) {
        events.push(event as Event);
        const [id = ""] = idsOf(events);
        if (event.type === "response.output_text.delta") cancelling ??= end(customer, id);
      }
      const cancelled = await cancelling;
      const text = events
        .flatMap((event) => (event.type === "response.output_text.delta" ? [event.delta] : []))
        .join("");
      expect(cancelled).toMatchObject({ status: "cancelled", error: null, output: [{ status: "incomplete" }] });
      expect([text, textOf(cancelled)]).toEqual([expect.stringMatching(/^Hello there/), text]);
      expect([events.at(-1)?.type, numbers(events)]).toEqual(["response.cancelled", events.map((_, n) => n)]);
      const [id = ""] = idsOf(events);
      expect(await customer.openai.responses.cancel(id)).toEqual(cancelled);
      const job = await fetch(`${running.service.baseUrl}/v1/jobs/${id.replace("resp_", "job_")}`, {
        headers: { authorization: `Bearer ${customer.key}` },
      });
      expect(await job.json()).toMatchObject({ status: "cancelled", status_code: 409, error: { code: "conflict" } });
      expect(await read(customer.openai, id, 1)).toEqual(events.slice(2));
      await running.provider.requests.at(-1)?.closed;
      gate.open();
      await running.service.settled();
      const entry = await entryOf(running.service, id.replace("resp_", "req_"));
      expect(entry).toMatchObject({ request: { status: "cancelled", estimated: true } });
      expect(nanoUsd(entry.amount_usd)).toBeLessThan(0n);
      await expectNotContinued(customer, model, id);
    },
  );
});

test("a response that waits is cancelled for free, and its stream ends", async () => {
  const customer = await running.service.account("1");
  const gate = held(0);
  running.provider.respond(gate.answer);
  const { model } = native;
  const first = await customer.openai.responses.create({ model, input: "Hello there", background: true });
  await running.provider.request(0);
  const stream = await customer.openai.responses.create({ model, input: "Hello", background: true, stream: true });
  const events: Event[] = [];
  let cancelled: OpenAI.Responses.Response | undefined;
  for await (const event of stream) {
    events.push(event as Event);
    const [id = ""] = idsOf(events);
    if (event.type === "response.queued") cancelled = await customer.openai.responses.cancel(id);
  }
  expect(cancelled).toMatchObject({ status: "cancelled", output: [] });
  expect(events.map(({ type }) => type)).toEqual(["response.created", "response.queued", "response.cancelled"]);
  const [id = ""] = idsOf(events);
  expect(await read(customer.openai, id)).toEqual(events);
  expect(await read(customer.openai, id, 2)).toEqual([]);
  gate.open();
  const { output_text: _, ...completed } = await ended(customer.openai, first.id);
  expect(await customer.openai.responses.cancel(first.id)).toEqual(completed);
  await running.service.settled();
  expect(running.provider.requests).toHaveLength(1);
  expect(await entryOf(running.service, id.replace("resp_", "req_"))).toMatchObject({ amount_usd: "0.00" });
});

test("a response that fails has the error, polled and streamed, and costs nothing", async () => {
  const customer = await running.service.account("1");
  const refused = mockError(400, "The prompt is not allowed.", { code: "invalid_prompt" });
  running.provider.respond(refused, refused);
  const asked = { model: native.model, input: "Hello there", background: true };
  const error = { code: "invalid_prompt", message: "The prompt is not allowed." };
  const polled = await customer.openai.responses.create({ ...asked, background: true });
  expect(await ended(customer.openai, polled.id)).toMatchObject({ status: "failed", error, output: [] });
  const events = await Array.fromAsync(await customer.openai.responses.create({ ...asked, stream: true }));
  const [id = ""] = idsOf(events);
  expect(events.slice(2)).toMatchObject([{ type: "response.failed", sequence_number: 2, response: { id, error } }]);
  expect(await read(customer.openai, id, 1)).toEqual(events.slice(2));
  expect(await customer.available()).toBe("1.00");
  expect(await (await get(customer, id, "DELETE")).json()).toEqual({ id, object: "response", deleted: true });
  for (const rest of [id, `${id}?stream=true`]) expect((await get(customer, rest)).status).toBe(404);
});

test("with store: false it is kept for ten minutes after its end, and is never continued", async () => {
  const customer = await running.service.account("1");
  const { model } = local;
  const { id } = await customer.openai.responses.create({ model, input: "Hello", background: true, store: false });
  await ended(customer.openai, id);
  await expectNotContinued(customer, model, id);
  const calls = await openCollection<{ _id: string; endedAt: Date; expiresAt: Date }>(running.stores, "detachedCalls");
  const call = await calls.findOne({ _id: id.replace("resp_", "req_") });
  expect(Number(call?.expiresAt) - Number(call?.endedAt)).toBe(600_000);
  running.advance(300_000);
  expect((await get(customer, id)).status).toBe(200);
  running.advance(300_000);
  for (const rest of [id, `${id}?stream=true`, `${id}/input_items`])
    expect(await errorOf(get(customer, rest))).toEqual([404, "not_found", null]);
});

test("a response whose worker stored it and died before the capture has failed, and is not continued", async () => {
  const customer = await running.service.account("1");
  const { model } = local;
  const { id } = await customer.openai.responses.create({ model, input: "Hello", background: true });
  await ended(customer.openai, id);
  const calls = await openCollection<{ _id: string; account: string; status: string }>(running.stores, "detachedCalls");
  const call = { _id: id.replace("resp_", "req_"), account: customer.id };
  expect(await calls.updateOne(call, { $set: { status: "failed" } })).toMatchObject({ modifiedCount: 1 });
  expect(await customer.openai.responses.retrieve(id)).toMatchObject({ status: "failed", output: [] });
  await expectNotContinued(customer, model, id);
});

test("Prefer: respond-async and ?async=1 mean the same, and a key gives the same response and stream", async () => {
  const customer = await running.service.account("1");
  const { model } = local;
  const body = { model, input: "Hello" };
  for (const [query, headers] of [
    ["", { prefer: "respond-async, wait=5" }],
    ["?async=1", {}],
  ] as const) {
    const answer = await customer.post(path + query, body, { headers });
    const response = (await answer.json()) as { id: string };
    expect([answer.status, answer.headers.get("preference-applied"), answer.headers.get("retry-after")]).toEqual([
      200,
      "respond-async",
      "2",
    ]);
    expect(response).toMatchObject({ status: "queued", background: true });
    expect(answer.headers.get("location")).toBe(`${running.service.baseUrl}${path}/${response.id}`);
    await ended(customer.openai, response.id);
  }
  const again = () =>
    customer.post(path, { ...body, background: true, stream: true }, { headers: { "idempotency-key": "order-17" } });
  const [first, second] = [await again(), await again()];
  expect([first, second].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
  expect(await second.text()).toBe(await first.text());
  await running.service.settled();
  expect(await customer.ledger("usage")).toHaveLength(3);
});

test("another account knows nothing of it, and only a response in the background is cancelled or streamed", async () => {
  const [owner, other] = [await running.service.account("10"), await running.service.account("1")];
  const { model } = local;
  const { id } = await owner.openai.responses.create({ model, input: "Hello", background: true });
  await ended(owner.openai, id);
  const ofOther: readonly (readonly [string, string?])[] = [
    [id],
    [`${id}?stream=true`],
    [`${id}/input_items`],
    [`${id}/cancel`, "POST"],
    [id, "DELETE"],
  ];
  for (const [rest, method] of ofOther)
    expect(await errorOf(get(other, rest, method))).toEqual([404, "not_found", null]);
  const synchronous = await owner.openai.responses.create({ model, input: "Hello" });
  const { id: foreign } = await owner.openai.responses.create({ model: responsesProvider.model, input: "Hello" });
  for (const each of [synchronous.id, foreign]) {
    expect(await errorOf(get(owner, `${each}/cancel`, "POST"))).toEqual([400, "invalid_value", "id"]);
    expect(await errorOf(get(owner, `${each}?stream=true`))).toEqual([400, "invalid_value", "stream"]);
  }
  for (const each of ["resp_unknown", `resp_${"x".repeat(24)}`])
    expect(await errorOf(get(owner, `${each}/cancel`, "POST"))).toEqual([404, "not_found", null]);
  // It was created without `stream: true`.
  expect(await errorOf(get(owner, `${id}?stream=true`))).toEqual([409, "stream_not_resumable", null]);
});
