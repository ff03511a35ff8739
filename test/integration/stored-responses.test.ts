import { randomBytes } from "node:crypto";
import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { dayMs, systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createStoredResponses } from "../../shared/stored-responses/index.ts";
import { startIdempotency } from "../support/idempotency-setup.ts";
import { withRelayedModel } from "../support/native-formats.ts";
import { hostedModel, nativeModel, reasoningModel, wholeStream } from "../support/responses-events.ts";
import { testStores } from "../support/servers.ts";
import { type Customer, startService } from "../support/service.ts";
import { entryOf, localModel, nanoUsd, serviceOfFile, startWithProvider } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const path = "/v1/responses";
type Fields = Readonly<Record<string, unknown>>;
type Asked = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, "stream">;

/** Calls as JSON or as a stream, through the official client. */
const respond = async (
  { openai }: Customer,
  asked: Asked,
  stream: boolean,
): Promise<OpenAI.Responses.Response & { store?: boolean }> =>
  stream
    ? wholeStream(await Array.fromAsync(await openai.responses.create({ ...asked, stream: true })))
    : openai.responses.create({ ...asked, stream: false });

const user = (content: string) => ({ role: "user" as const, content });
const sentInputs = () => running.provider.requests.map(({ body }) => body["input"]);
const refusal = async (asking: Promise<Response>) => {
  const response = await asking;
  const { error } = (await response.json()) as { error: Fields };
  return [response.status, error["code"], error["param"]];
};

describe.each([false, true])("stream: %s", (stream) => {
  test("three turns of a reasoning model by previous_response_id", async () => {
    const customer = await running.service.account("1");
    running.provider.respond({ id: "resp_1" }, { id: "resp_2" }, { id: "resp_3" });
    const model = reasoningModel;
    const first = await respond(customer, { model, input: "Hello", instructions: "Be brief." }, stream);
    expect(first).toMatchObject({ id: "resp_1", previous_response_id: null });
    const second = await respond(
      customer,
      { model, input: [user("And now?")], previous_response_id: "resp_1" },
      stream,
    );
    expect(second).toMatchObject({ id: "resp_2", store: false, previous_response_id: "resp_1" });
    const third = await respond(
      customer,
      { model, input: "The end", previous_response_id: "resp_2", instructions: "Be kind.", store: false },
      stream,
    );
    expect(third).toMatchObject({ store: false, previous_response_id: "resp_2" });

    const opening = { type: "message", role: "user", content: "Hello" };
    const { output } = JSON.parse(JSON.stringify({ output: [first.output, second.output] })) as { output: Fields[][] };
    expect(output[0]?.[0]).toMatchObject({ type: "reasoning", encrypted_content: "ZW5jcnlwdGVk" });
    const [firstOutput = [], secondOutput = []] = output;
    expect(sentInputs()).toEqual([
      "Hello",
      [opening, ...firstOutput, user("And now?")],
      [opening, ...firstOutput, user("And now?"), ...secondOutput, user("The end")],
    ]);
    const sent = running.provider.requests.map(({ body }) => body);
    expect(sent.map(({ store, include, instructions }) => [store, include, instructions])).toEqual([
      [false, ["reasoning.encrypted_content"], "Be brief."],
      [false, ["reasoning.encrypted_content"], undefined],
      [false, ["reasoning.encrypted_content"], "Be kind."],
    ]);
    expect(sent.some((body) => "previous_response_id" in body)).toBe(false);
    expect(await refusal(customer.post(path, { model, input: "x", previous_response_id: "resp_3" }))).toEqual([
      400,
      "invalid_value",
      "previous_response_id",
    ]);
  });

  test("a second turn that refers to items, as the AI SDK sends it", async () => {
    const customer = await running.service.account("1");
    const model = reasoningModel;
    const tools = [{ type: "function" as const, name: "look_up", parameters: {}, strict: false }];
    const question = user('look_up "Oslo"');
    const first = await respond(customer, { model, input: [question], tools }, stream);
    const [thought, call] = first.output;
    if (thought?.type !== "reasoning" || call?.type !== "function_call") throw new TypeError("no call");
    const result = { type: "function_call_output" as const, call_id: call.call_id, output: "rain" };
    const references = [{ type: "item_reference" as const, id: thought.id }, { id: call.id ?? "" }] as const;
    await respond(customer, { model, input: [question, ...references, result], tools }, stream);
    const [, again] = sentInputs();
    expect(again).toEqual([question, { ...thought }, { ...call }, result]);
    expect(again).toMatchObject([{}, { encrypted_content: "ZW5jcnlwdGVk" }, {}, {}]);
  });

  test.each([localModel, hostedModel, nativeModel])("%s: stored, read, listed and deleted", async (model) => {
    const customer = await running.service.account("1");
    const { responses } = customer.openai;
    const first = await respond(customer, { model, input: "Hello there" }, stream);
    // Nothing is stored at the provider.
    expect(first.store).toBe(false);
    const [message] = first.output;
    if (message?.type !== "message") throw new TypeError("no message");
    const second = await respond(
      customer,
      { model, input: [user("Again"), { type: "item_reference", id: message.id }], previous_response_id: first.id },
      stream,
    );
    const { _request_id: _, output_text: __, ...whole } = await responses.retrieve(second.id);
    expect(whole).toEqual(JSON.parse(JSON.stringify({ ...second, _request_id: undefined, output_text: undefined })));
    const page = await responses.inputItems.list(second.id, { order: "asc", limit: 2 });
    expect(page.data).toMatchObject([
      { type: "message", content: [{ type: "input_text", text: "Hello there" }] },
      { type: "message", role: "assistant" },
    ]);
    expect(page.has_more).toBe(true);
    const all = await Array.fromAsync(responses.inputItems.list(second.id, { limit: 1 }));
    expect(all).toMatchObject([{ role: "assistant" }, { role: "user" }, { role: "assistant" }, { role: "user" }]);
    expect(new Set(all.map((item) => ("id" in item ? item.id : ""))).size).toBe(4);

    expect(await responses.delete(second.id)).toMatchObject({ id: second.id, deleted: true });
    for (const asking of [() => responses.retrieve(second.id), () => responses.delete(second.id)])
      await expect(asking()).rejects.toMatchObject({ status: 404, code: "not_found" });
  });
});

describe("another account's ids", () => {
  test("are refused as unknown ones are, and two accounts may have the same", async () => {
    const [owner, other] = [await running.service.account("1"), await running.service.account("1")];
    const { id, output } = await respond(owner, { model: nativeModel, input: "mine" }, false);
    const [item] = output;
    const gone = (named: string) => [
      refusal(other.post(path, { model: nativeModel, input: "x", previous_response_id: named })),
      ...[{ type: "item_reference", id: named }, { id: named }].map((reference) =>
        refusal(other.post(path, { model: nativeModel, input: [user("x"), reference] })),
      ),
    ];
    const get = (end: string, method = "GET") =>
      refusal(
        fetch(`${running.service.baseUrl}${path}/${end}`, {
          method,
          headers: { authorization: `Bearer ${other.key}` },
        }),
      );
    const itemId = (item as { id: string }).id;
    for (const [responseId, named] of [
      [id, itemId],
      ["resp_unknown", "msg_unknown"],
    ] as const) {
      expect((await Promise.all(gone(responseId)))[0]).toEqual([400, "invalid_value", "previous_response_id"]);
      expect((await Promise.all(gone(named))).slice(1)).toEqual([
        [400, "invalid_value", "input[1].id"],
        [400, "invalid_value", "input[1].id"],
      ]);
      const answers = [get(responseId), get(`${responseId}/input_items`), get(responseId, "DELETE")];
      for (const answer of await Promise.all(answers)) expect(answer).toEqual([404, "not_found", null]);
    }
    expect(running.provider.requests).toHaveLength(1);
    // The mock gives every response the same id.
    expect((await respond(other, { model: nativeModel, input: "theirs" }, false)).id).toBe(id);
    const items = await owner.openai.responses.inputItems.list(id);
    expect(JSON.stringify(items.data)).toContain("mine");
  });
});

test("without a key nothing is read", async () => {
  for (const end of ["resp_1", "resp_1/input_items"])
    expect((await fetch(`${running.service.baseUrl}${path}/${end}`)).status).toBe(401);
});

test("the whole input is held for and charged, and errors name the caller's own fields", async () => {
  const customer = await running.service.account("0.012");
  const input = "x".repeat(16_000);
  const asked = { model: nativeModel, max_output_tokens: 16 };
  const { id } = await respond(customer, { ...asked, input }, false);
  const continued = { ...asked, previous_response_id: id };
  await running.service.settled();
  expect((await customer.post(path, { ...asked, input })).status).toBe(200);
  await running.service.settled();
  expect((await customer.post(path, { ...continued, input })).status).toBe(402);
  const answer = await customer.openai.responses.create({ ...continued, input: "one two" });
  await running.service.settled();
  const { amount_usd } = await entryOf(running.service, answer._request_id);
  const { input_tokens = 0, output_tokens = 0 } = answer.usage ?? {};
  // The mock counts words: those of both inputs and of the first answer.
  expect(input_tokens).toBeGreaterThan(8);
  expect(nanoUsd(amount_usd)).toBe(-(BigInt(input_tokens) * 400n + BigInt(output_tokens) * 1_600n));

  const unknown = { previous_response_id: "resp_unknown" };
  const rows: readonly (readonly [Fields, string])[] = [
    [{ input: [user("x"), { type: "no_such" }] }, "input[1].type"],
    [{ previous_response_id: 7 }, "previous_response_id"],
    [{ previous_response_id: "r".repeat(1_000) }, "previous_response_id"],
    [{ input: Array.from({ length: 1_001 }, () => ({ id: "msg_1" })) }, "input"],
    [{ input: [{ type: "item_reference" }] }, "input[0].id"],
    [{ input: 7 }, "input"],
    // Errors in the request itself are reported before anything is read.
    [{ ...unknown, temperature: 9 }, "temperature"],
    [{ ...unknown, input: [user("x"), { type: "no_such" }] }, "input[1].type"],
    [{ ...unknown, input: [{ id: "msg_1" }, { role: "nobody", content: "x" }] }, "input[1].role"],
  ];
  for (const [fields, param] of rows)
    expect(await refusal(customer.post(path, { ...continued, input: "x", ...fields }))).toEqual([
      400,
      "invalid_value",
      param,
    ]);
});

test("a response over 64 KB is in object storage", async () => {
  const customer = await running.service.account("10");
  const input = randomBytes(150_000).toString("base64");
  const { id } = await respond(customer, { model: nativeModel, input, max_output_tokens: 16 }, false);
  await respond(customer, { model: nativeModel, input: "x", previous_response_id: id, max_output_tokens: 16 }, false);
  expect(sentInputs()[1]).toMatchObject([{ content: input }, {}, user("x")]);
  await respond(customer, { model: nativeModel, input: [], previous_response_id: id, max_output_tokens: 16 }, false);
  // The mock gives every response the same id.
  expect(sentInputs()[2]).toMatchObject([{ content: input }, {}, user("x"), {}]);
  await customer.openai.responses.delete(id);
  await expect(customer.openai.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
});

test("a response that cannot be stored is delivered, and one too large to be sent again is refused", async () => {
  const { service, provider } = await startWithProvider({
    S3_ENDPOINT: "http://127.0.0.1:1",
    BODY_LIMIT_BYTES: "2000",
  });
  const customer = await service.account("1");
  provider.always({ text: randomBytes(150_000).toString("base64") });
  for (const stream of [false, true]) {
    const { id } = await respond(customer, { model: nativeModel, input: "Hello" }, stream);
    await expect(customer.openai.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
  }
  provider.always({ text: "x".repeat(1_500) });
  const { id } = await respond(customer, { model: nativeModel, input: "Hello" }, false);
  const further = { model: nativeModel, input: "x".repeat(500), previous_response_id: id };
  expect(await refusal(customer.post(path, further))).toEqual([400, "invalid_value", "previous_response_id"]);
  await provider.close();
});

test("over its quota an account stores nothing more", async () => {
  const { mongo, files } = await (await startIdempotency()).another();
  const log = createLogger("test", "silent");
  const store = createStoredResponses({
    mongo,
    files,
    clock: systemClock,
    log,
    quota: { responses: 2, bytes: 10_000 },
  });
  const put = (account: string, id: string, text = "x") =>
    store.put({ account, requestId: id }, { input: [], response: { id, output: [], text } });
  expect(await put("acc_1", "resp_0", randomBytes(20_000).toString("base64"))).toBe(false);
  expect([await put("acc_1", "resp_1"), await put("acc_1", "resp_2"), await put("acc_1", "resp_3")]).toEqual([
    true,
    true,
    false,
  ]);
  expect(await put("acc_2", "resp_3")).toBe(true);
  expect(await store.find("acc_1", "resp_3")).toBeUndefined();
});

test("a restart of API and worker loses nothing", async () => {
  const stores = await testStores();
  const stops: (() => Promise<void>)[] = [];
  const before = await startService(stores, { onEnd: (stop) => stops.push(stop) });
  const { key, openai } = await before.account("1");
  const { id } = await openai.responses.create({ model: localModel, input: "Hello there" });
  for (const stop of stops) await stop();
  const after = await startService(stores);
  const answer = await fetch(`${after.baseUrl}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: localModel, input: "Again", previous_response_id: id }),
  });
  expect([answer.status, await answer.json()]).toMatchObject([200, { previous_response_id: id, store: false }]);
});

test("after 24 hours an answer is unknown", async () => {
  const customer = await running.service.account("1");
  const { id } = await respond(customer, { model: localModel, input: "Hello" }, false);
  const further = () => customer.post(path, { model: localModel, input: "x", previous_response_id: id });
  running.advance(dayMs - 60_000);
  expect((await further()).status).toBe(200);
  running.advance(60_000);
  expect(await refusal(further())).toEqual([400, "invalid_value", "previous_response_id"]);
  await expect(customer.openai.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
});
