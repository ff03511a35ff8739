import { expect, test } from "vitest";
import type { JsonObject } from "#json";
import type { Customer } from "../support/service.ts";
import { warmModel, warmService } from "../support/warm-caches-setup.ts";

const running = warmService();
const turns = 50;
const system = "You are a patient assistant. ".repeat(200);
const said = (turn: number) => `Question ${turn}: ${"why is that so? ".repeat(20)}`;
const heard = "Hello there, how may I help you today?";
const history = (turn: number) =>
  Array.from({ length: turn + 1 }, (_, n) => [
    ...(n > 0 ? [{ role: "assistant", content: heard }] : []),
    { role: "user", content: said(n) },
  ]).flat();

interface Turn {
  readonly path: string;
  readonly body: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
}
/** `last` is the answer to the turn before. */
type Conversation = (turn: number, last: JsonObject) => Turn;

const chat = (turn: number, more: JsonObject = {}) => ({
  path: "/v1/chat/completions",
  body: { model: warmModel, messages: [{ role: "system", content: system }, ...history(turn)], ...more },
});
const messages = (turn: number, more: JsonObject = {}) => ({
  path: "/v1/messages",
  body: { model: warmModel, max_tokens: 99, system, messages: history(turn), ...more },
});
const responses = (turn: number, more: JsonObject = {}) => ({
  path: "/v1/responses",
  body: { model: warmModel, instructions: system, input: history(turn), store: false, ...more },
});
/** Without its first turns only a name identifies the conversation. */
const question = (turn: number) => [{ role: "user", content: said(turn) }];

const conversations: Readonly<Record<string, Conversation>> = {
  session_id: (turn) =>
    chat(turn, { messages: [{ role: "system", content: system }, ...question(turn)], session_id: "s" }),
  "x-session-id": (turn) => ({ ...messages(turn, { messages: question(turn) }), headers: { "x-session-id": "s" } }),
  "x-session-id of a Gemini call": (turn) => ({
    path: `/v1beta/models/${warmModel}:generateContent`,
    body: { systemInstruction: { parts: [{ text: system }] }, contents: [{ parts: [{ text: said(turn) }] }] },
    headers: { "x-session-id": "s" },
  }),
  "prompt_cache_key of Responses": (turn) => responses(turn, { input: question(turn), prompt_cache_key: "s" }),
  "metadata.user_id of Messages": (turn) => messages(turn, { messages: question(turn), metadata: { user_id: "s" } }),
  "the opening of chat": (turn) => chat(turn),
  "the opening of Messages": (turn) => messages(turn),
  "the opening of Gemini": (turn) => ({
    path: `/v1beta/models/${warmModel}:generateContent`,
    body: {
      systemInstruction: { parts: [{ text: system }] },
      contents: history(turn).map(({ role, content }) => ({
        role: role === "user" ? "user" : "model",
        parts: [{ text: content }],
      })),
    },
  }),
  previous_response_id: (turn, { id }) =>
    responses(turn, { input: question(turn), store: true, ...(turn > 0 && { previous_response_id: id }) }),
};

async function hold(customer: Customer, conversation: Conversation, from = 0, to = turns): Promise<void> {
  let last: JsonObject = {};
  for (let turn = from; turn < to; turn++) {
    const { path, body, headers = {} } = conversation(turn, last);
    const response = await customer.post(path, body, { headers });
    last = (await response.json()) as JsonObject;
    expect([response.status, last["error"] ?? null]).toEqual([200, null]);
  }
}

const calls = () => running.upstreams.map(({ counts }) => counts.calls);

test.each(Object.entries(conversations))(
  "fifty turns of %s are as warm at four upstreams as at one",
  async (_, conversation) => {
    const { service, cachedTokens } = running;
    await hold(await service.account("5"), conversation);
    expect(calls().toSorted((a, b) => b - a)).toEqual([turns, 0, 0, 0]);
    const { cached, atOne } = cachedTokens();
    expect(cached).toBeGreaterThan(turns * 1_000);
    expect(cached).toBeGreaterThanOrEqual(0.9 * atOne);
  },
);

test("a conversation leaves an upstream that fails for one other, and stays there", async () => {
  const { service, upstreams } = running;
  const customer = await service.account("5");
  const talk: Conversation = (turn) => chat(turn);
  await hold(customer, talk, 0, 10);
  const first = upstreams.find(({ counts }) => counts.calls === 10);
  if (!first) throw new Error("not one upstream");
  first.fail();
  await hold(customer, talk, 10, turns);
  expect(calls().toSorted((a, b) => b - a)).toEqual([turns - 10, 10, 0, 0]);
});

test("conversations are spread over the upstreams, and those of another account elsewhere", async () => {
  const { service } = running;
  const ids = Array.from({ length: 40 }, (_, n) => `conversation ${n}`);
  const placesOf = async (customer: Customer) => {
    const places: number[] = [];
    for (const session_id of ids) {
      const before = calls();
      await hold(customer, (turn) => chat(turn, { session_id }), 0, 1);
      places.push(calls().findIndex((count, n) => count !== before[n]));
    }
    return places;
  };
  const [one, other] = await Promise.all([service.account("5"), service.account("5")]);
  const places = await placesOf(one);
  expect(new Set(places)).toEqual(new Set([0, 1, 2, 3]));
  expect(await placesOf(one)).toEqual(places);
  expect(await placesOf(other)).not.toEqual(places);
});
