import { describe, expect, test } from "vitest";
import {
  chatProvider,
  costOf,
  formatsService,
  geminiProvider,
  local,
  messagesProvider,
  relay,
  responsesProvider,
  sent,
  type Target,
} from "../support/formats-service.ts";
import { mockChunk, mockUsage } from "../support/mock-openai.ts";
import {
  chatClient,
  completionsClient,
  geminiClient,
  messagesClient,
  type OfficialClient,
  responsesClient,
} from "../support/official-clients.ts";
import { chatAnswer } from "../support/responses-events.ts";
import { entriesOf, nanoUsd } from "../support/service-setup.ts";

const served = formatsService();
const fromGemini = [local, geminiProvider, relay, responsesProvider, messagesProvider];
const callers: readonly (readonly [OfficialClient, readonly Target[]])[] = [
  [chatClient, [local, chatProvider]],
  [responsesClient, [local, chatProvider, relay]],
  [messagesClient, [local, messagesProvider, relay]],
  [geminiClient, fromGemini],
  [completionsClient, fromGemini],
];
const rows = callers.flatMap(([client, targets]) =>
  targets.map((target) => ({ client, target, name: client.name, by: target.name })),
);

async function newCustomer() {
  const customer = await served.service.account("10");
  return { customer, access: { baseUrl: served.service.baseUrl, key: customer.key } };
}

/** The mock of chat neither calls tools nor heeds caps unless scripted. */
const isScripted = (client: OfficialClient, target: Target) =>
  target === relay || (target === chatProvider && client === chatClient);

describe.each(rows)("$name, served by $by", ({ client, target }) => {
  const { model } = target;
  const hi = { model, content: "Hello there" };
  const [end, , atCap] = client.ends;
  test("an answer and a stream say the same under our model id, and are charged as they say", async () => {
    const { customer, access } = await newCustomer();
    const whole = await client.ask(access, { ...hi, stream: false });
    expect(whole).toMatchObject({ text: target.says, model, end, calls: [] });
    expect(await client.ask(access, { ...hi, stream: true })).toEqual(whole);
    expect(Math.min(whole.usage.input, whole.usage.output)).toBeGreaterThan(0);
    const entries = await entriesOf(served.service, customer);
    const request = { model, status: "succeeded", usage: whole.usage, estimated: false };
    expect(entries).toMatchObject([{ request }, { request }]);
    for (const entry of entries) {
      expect(entry.request.endpoint).toMatch(new RegExp(`^${client.endpoint}`));
      expect(nanoUsd(entry.amount_usd)).toBe(-costOf(model, whole.usage));
    }
  });

  test.each([false, true])("an answer ends at the cap, stream: %s", async (stream) => {
    const { access } = await newCustomer();
    const cap = 16;
    const script = { incomplete: "max_output_tokens" as const };
    const events = [mockChunk({ role: "assistant", content: "Hel" }), mockChunk({}, "length")];
    if (isScripted(client, target))
      served.provider.respond(stream ? { events } : chatAnswer({ content: "Hel" }, "length"));
    else served.provider.respond(script);
    const content = target === local ? "tokens:100" : "word ".repeat(30);
    expect(await client.ask(access, { model, content, cap, stream })).toMatchObject({ end: atCap });
    expect(JSON.stringify(sent(served, target))).toMatch(target === local ? /^\{\}$/ : /"max_?\w*tokens":16\b/i);
  });
});

/** Scripts calls of functions with a city, in pieces. */
function scriptCalls(client: OfficialClient, target: Target, stream: boolean, ...names: string[]) {
  if (!isScripted(client, target)) return;
  const calls = names.map((name, index) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: { name, arguments: '{"city":"Oslo"}' },
  }));
  const piece = (index: number, more: object) => mockChunk({ tool_calls: [{ index, ...more }] });
  const events = [
    mockChunk({ role: "assistant", content: null }),
    ...calls.map(({ index, ...call }) => piece(index, { ...call, function: { ...call.function, arguments: "" } })),
    ...calls.map(({ index }) => piece(index, { function: { arguments: '{"city":' } })),
    ...calls.map(({ index }) => piece(index, { function: { arguments: '"Oslo"}' } })),
    mockChunk({}, "tool_calls"),
    mockChunk(undefined, null, { usage: mockUsage() }),
  ];
  served.provider.respond(stream ? { events } : chatAnswer({ tool_calls: calls }, "tool_calls"));
}

describe.each(rows.filter(({ client }) => client.run))(
  "tools and schemas of $name, served by $by",
  ({ client, target }) => {
    const { model } = target;
    const [, withCalls] = client.ends;

    test.each([false, true])(
      "parallel calls have distinct ids and arguments of their schema, stream: %s",
      async (stream) => {
        const { access } = await newCustomer();
        const names = ["get_weather", "get_time"];
        scriptCalls(client, target, stream, ...names);
        const content = 'get_weather and get_time of "Oslo" and "Oslo"';
        const answer = await client.ask(access, { model, content, stream, tools: true });
        expect(answer.calls).toEqual(
          names.map((name) => ({ id: expect.stringMatching(/./), name, args: { city: expect.any(String) } }) as object),
        );
        expect([answer.end, new Set(answer.calls.map(({ id }) => id)).size]).toEqual([withCalls, 2]);
      },
    );

    test.each([false, true])("a function is run, and its result is in the next request, stream: %s", async (stream) => {
      const { customer, access } = await newCustomer();
      scriptCalls(client, target, stream, "get_weather");
      const ran: string[] = [];
      const said = await client.run?.(access, { model, content: 'get_weather of "Oslo"', stream }, (city) => {
        ran.push(city);
        return `rain in ${city}`;
      });
      expect(ran).toHaveLength(1);
      expect(target === local ? said : JSON.stringify(sent(served, target))).toContain(`rain in ${ran[0]}`);
      const request = { status: "succeeded", model };
      expect(await entriesOf(served.service, customer)).toMatchObject([{ request }, { request }]);
    });

    test("an answer has the schema that the client parses, whole and in a stream", async () => {
      const { access } = await newCustomer();
      served.provider.always({ text: '{"name":"Ada","age":36}' });
      const request = { model, content: 'I met "Ada", who is 36.' };
      const whole = await client.parse?.(access, { ...request, stream: false });
      expect(whole).toEqual({ name: expect.any(String), age: expect.any(Number) });
      expect(await client.parse?.(access, { ...request, stream: true })).toEqual(whole);
    });
  },
);
