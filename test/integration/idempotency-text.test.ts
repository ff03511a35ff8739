import { describe, expect, test } from "vitest";
import { charges, images, providerImages } from "../support/generation-setup.ts";
import { answerOf, keyed, post } from "../support/idempotency-setup.ts";
import { mockError } from "../support/mock-openai.ts";
import { times } from "../support/money-setup.ts";
import {
  type Asked,
  chatFace,
  type Face,
  geminiFace,
  messagesFace,
  refusalIn,
  refusalOf,
  relayedModel,
  responsesFace,
  send,
  streamFaces,
  withRelayedModel,
} from "../support/native-formats.ts";
import {
  expectUntouched,
  gate,
  localModel,
  never,
  providerModel,
  type Refusal,
  serviceOfFile,
} from "../support/service-setup.ts";

const env = { CATALOG_FILE: withRelayedModel() };
const running = serviceOfFile(env);
type Served = Awaited<ReturnType<typeof running.service.account>>;

const embeddingsFace: Face = {
  ...chatFace,
  name: "embeddings",
  ask: (model, input, more = {}) => ({ path: "/v1/embeddings", body: { model, input, ...more } }),
};

const imagesFace: Face = {
  ...chatFace,
  name: "images",
  ask: (_, prompt) => ({ path: images, body: { model: providerImages, prompt } }),
};

const table = [
  { face: chatFace, model: relayedModel },
  { face: embeddingsFace, model: "openai/text-embedding-3-small" },
  { face: imagesFace, model: providerImages },
  ...[responsesFace, messagesFace, geminiFace].map((face) => ({ face, model: relayedModel })),
];

const at = ({ path, body }: Asked, customer: Served, key = "key-1") => post(customer, body, key, path);
const conflict: Refusal = { status: 409, type: "conflict_error", code: "conflict" };

describe.each(table)("$face.name", ({ face, model }) => {
  test("20 equal calls at once: one provider call, one charge, equal bytes; a later one is answered from the store", async () => {
    const customer = await running.service.account("1");
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    const answers = times(20, () => at(face.ask(model, "Hi"), customer));
    await running.provider.request(0);
    answered.open();
    const all = await Promise.all(answers);
    const first = all.find(({ replayed }) => replayed === null);
    expect(first).toMatchObject({ status: 200, id: expect.stringMatching(/^req_/) });
    expect(all.filter((each) => each !== first)).toEqual(times(19, () => ({ ...first, replayed: "true" })));
    await running.service.settled();
    const [charge, ...others] = await charges(customer);
    expect([charge, others]).toMatchObject([{ id: first?.id, amount_usd: `-${first?.cost}` }, []]);
    expect(await at(face.ask(model, "Hi"), customer)).toEqual({ ...first, replayed: "true" });
    expect(running.provider.requests).toHaveLength(1);
  });

  test("a caller who disconnects and repeats gets the answer of the one run", async () => {
    const customer = await running.service.account("1");
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    const { path, body } = face.ask(model, "Hi");
    const controller = new AbortController();
    const cut = customer.post(path, body, { ...keyed(), signal: controller.signal });
    const request = await running.provider.request(0);
    controller.abort();
    await expect(cut).rejects.toThrow(/abort/i);
    const joined = at({ path, body }, customer);
    answered.open();
    await request.closed;
    expect(request.aborted).toBe(false);
    expect(await joined).toMatchObject({ status: 200, replayed: "true" });
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(1);
    expect(running.provider.requests).toHaveLength(1);
  });

  test("another body, while the call runs and after it: 409 in the format's own shape, with nothing charged for it", async () => {
    const customer = await running.service.account("1");
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    const first = at(face.ask(model, "Hi"), customer);
    await running.provider.request(0);
    const refuseAnother = async () => {
      const { path, body } = face.ask(model, "Hello");
      const refused = await customer.post(path, body, keyed());
      expect(refused.headers.get("x-should-retry")).toBe("false");
      expect(await refusalIn(face, refused)).toEqual(refusalOf(face, conflict));
    };
    await refuseAnother();
    answered.open();
    expect(await first).toMatchObject({ status: 200 });
    await refuseAnother();
    expect(await at(face.ask(model, "Hi"), customer)).toEqual({ ...(await first), replayed: "true" });
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(1);
  });

  test("a failed call frees its key", async () => {
    const customer = await running.service.account("1");
    running.provider.respond(mockError(400, "no"));
    expect(await at(face.ask(model, "Hi"), customer)).toMatchObject({ status: 400, replayed: null });
    expect(await at(face.ask(model, "Hello"), customer)).toMatchObject({ status: 200, replayed: null });
    await running.service.settled();
    expect(await charges(customer)).toHaveLength(1);
  });
});

describe("what identifies a request", () => {
  const asked = geminiFace.ask(relayedModel, "Hi");
  const others: readonly (readonly [string, Asked, Asked, Record<string, string>, number])[] = [
    ["Gemini: the model in the path", asked, geminiFace.ask(providerModel, "Hi"), {}, 409],
    ["Gemini: not the version in the path", asked, { ...asked, path: asked.path.replace("beta", "") }, {}, 200],
    ["Gemini: not the query", asked, { ...asked, path: `${asked.path}?prettyPrint=false` }, {}, 200],
    ...["anthropic-version", "anthropic-beta"].map(
      (name) =>
        [
          `Messages: ${name}`,
          messagesFace.ask(relayedModel, "Hi"),
          messagesFace.ask(relayedModel, "Hi"),
          { [name]: "2024-01-01" },
          409,
        ] as const,
    ),
    [
      "another endpoint",
      chatFace.ask(localModel, "Hi"),
      { ...chatFace.ask(localModel, "Hi"), path: "/v1/responses" },
      {},
      400,
    ],
  ];
  test.each(others)("%s", async (_, one, other, headers, status) => {
    const customer = await running.service.account("1");
    expect(await at(one, customer)).toMatchObject({ status: 200 });
    const init = { headers: { ...keyed().headers, ...headers } };
    expect(await answerOf(customer.post(other.path, other.body, init))).toMatchObject({
      status,
      replayed: status === 200 ? "true" : null,
    });
  });
});

test.each(streamFaces.map((face) => [face.name, face] as const))("%s: a stream ignores the key", async (_, face) => {
  const customer = await running.service.account("1");
  for (const said of ["Hi", "Hello"])
    expect(await at(face.stream(relayedModel, said), customer)).toMatchObject({ status: 200, replayed: null });
  expect(running.provider.requests).toHaveLength(2);
});

test.each([
  ["Messages", "/v1/messages/count_tokens", messagesFace.ask(localModel, "Hi").body],
  ["Gemini", `/v1beta/models/${localModel}:countTokens`, geminiFace.ask(localModel, "Hi").body],
])("counting the tokens of %s is free and ignores the key", async (_, path, body) => {
  const customer = await running.service.account("1");
  for (const more of [{}, { temperature: 0.5 }])
    expect(await post(customer, { ...body, ...more }, "key-1", path)).toMatchObject({ replayed: null });
});

test("the headers are those of the first answer: request-id of Messages, and x-ignored-params", async () => {
  const customer = await running.service.account("1");
  const { path, body } = messagesFace.ask(relayedModel, "Hi", { top_k: 3 });
  const ask = async () => {
    const { headers } = await customer.post(path, body, keyed());
    return ["request-id", "x-ignored-params", "idempotent-replayed"].map((name) => headers.get(name));
  };
  const first = await ask();
  expect(first).toEqual([expect.stringMatching(/^req_/), "top_k", null]);
  expect(await ask()).toEqual([...first.slice(0, 2), "true"]);
});

describe("longer than MEDIA_SYNC_TIMEOUT", () => {
  const syncTimeoutMs = 285_000;
  const inProgress: Refusal = { status: 503, type: "server_error", code: "generation_in_progress" };

  test.each(table)(
    "$face.name: 503 in the format's own shape while the work goes on, then its answer",
    async ({ face, model }) => {
      const customer = await running.service.account("1");
      const answered = gate();
      running.provider.respond({ beforeHeaders: answered.opened });
      const { path, body } = face.ask(model, "Hi");
      const calling = customer.post(path, body, keyed());
      await running.provider.request(0);
      running.advance(syncTimeoutMs);
      const response = await calling;
      expect([response.headers.get("retry-after"), response.headers.get("x-should-retry")]).toEqual(["5", null]);
      expect(await refusalIn(face, response)).toEqual(refusalOf(face, inProgress));
      answered.open();
      await running.service.settled();
      expect(await at(face.ask(model, "Hi"), customer)).toMatchObject({
        status: 200,
        replayed: "true",
        id: response.headers.get("x-request-id"),
      });
      expect(running.provider.requests).toHaveLength(1);
    },
  );

  test("without a key a call of text runs until its own deadline", async () => {
    const customer = await running.service.account("1");
    const answered = gate();
    running.provider.respond({ beforeHeaders: answered.opened });
    const calling = send(customer, chatFace.ask(providerModel, "Hi"));
    await running.provider.request(0);
    running.advance(syncTimeoutMs);
    answered.open();
    expect(await calling).toMatchObject({ status: 200 });
  });

  test("without a key an image is aborted, nothing is charged, 504 with x-should-retry false", async () => {
    const customer = await running.service.account("1");
    running.provider.respond({ beforeHeaders: never });
    const calling = send(customer, imagesFace.ask(providerImages, "Hi"));
    const request = await running.provider.request(0);
    running.advance(syncTimeoutMs);
    const response = await calling;
    expect(response.headers.get("x-should-retry")).toBe("false");
    const outOfTime: Refusal = { status: 504, type: "server_error", code: "upstream_timeout" };
    expect(await refusalIn(imagesFace, response)).toEqual(refusalOf(imagesFace, outOfTime));
    await request.closed;
    expect(request.aborted).toBe(true);
    await expectUntouched(running.service, customer, "1.00");
  });
});
