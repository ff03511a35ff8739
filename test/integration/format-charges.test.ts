import type { BatchCreateParams } from "openai/resources/batches";
import { expect, test } from "vitest";
import {
  chatProvider,
  costOf,
  formatsService,
  geminiProvider,
  local,
  messagesProvider,
  relay,
  responsesProvider,
  type Target,
} from "../support/formats-service.ts";
import { mockUsage } from "../support/mock-openai.ts";
import type { ProviderAnswer } from "../support/mock-provider.ts";
import {
  type Asked,
  chatFace,
  type Face,
  faces,
  geminiFace,
  messagesFace,
  responsesFace,
  send,
} from "../support/native-formats.ts";
import { eventsOf, saidIn } from "../support/native-stream-events.ts";
import { messagesEnd, messagesStart, messagesText } from "../support/provider-events.ts";
import { eventually } from "../support/service.ts";
import { entriesOf, nanoUsd } from "../support/service-setup.ts";

const served = formatsService();
/** Its hold covers every usage here. */
const long = "word ".repeat(2_000);

/** All that the mocks of this file are told. */
interface Script extends ProviderAnswer {
  readonly usage?: object | false;
  readonly text?: string;
  readonly content?: readonly object[];
  readonly stopReason?: string;
}
type Usage = Readonly<Record<string, number>>;

/** The charge of this call by a new customer, which is all that is missing from the balance. */
async function chargeOf(asked: Asked) {
  const customer = await served.service.account("10");
  const response = await send(customer, asked);
  const text = await response.text();
  const [entry, ...others] = await entriesOf(served.service, customer);
  expect([response.status, others]).toEqual([200, []]);
  const cost = -nanoUsd(entry?.amount_usd ?? "");
  expect(nanoUsd(await customer.available())).toBe(10_000_000_000n - cost);
  const { usage, estimated, shortfall_usd } = entry?.request ?? {};
  return { text, header: response.headers.get("x-xm-cost-usd"), charge: { usage, estimated, shortfall_usd, cost } };
}

const tagged = { "x-xm-tags": " team-a,feature=search,team-a ", "x-session-id": "of the header" };
const longUser = "u".repeat(257);
const tags = ["team-a", "feature=search"];
const labels: readonly (readonly [Face, more: object, recorded: object])[] = [
  [chatFace, { user: "someone", session_id: "conversation" }, { user: "someone", session_id: "conversation" }],
  [responsesFace, { user: longUser }, { user: longUser.slice(1), session_id: "of the header" }],
  [
    messagesFace,
    { metadata: { user_id: "someone" }, user: "nobody" },
    { user: "someone", session_id: "of the header" },
  ],
  [geminiFace, {}, { session_id: "of the header" }],
];

test.for(labels.flatMap((row) => ([false, true] as const).map((streams) => [row[0].name, streams, row] as const)))(
  "the ledger has the tags, the session and the user of a call: %s, streamed: %s",
  async ([, streams, [face, more, recorded]]) => {
    const customer = await served.service.account("10");
    const { path, body } = (streams ? face.stream : face.ask)(local.model, "Hello.", more);
    for (const headers of [tagged, {}]) {
      const response = await customer.post(path, body, { headers });
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    }
    const [plain, labeled] = await entriesOf(served.service, customer);
    expect(labeled?.request).toMatchObject({ ...recorded, tags });
    expect(plain?.request).not.toHaveProperty("tags");
  },
);

const chargeFor = ({ model }: Target, usage: Usage, estimated = false) => ({
  usage: expect.objectContaining(usage) as object,
  estimated,
  shortfall_usd: "0.00",
  cost: costOf(model, usage),
});

const cacheWrites = {
  input_tokens: 600,
  cache_read_input_tokens: 400,
  cache_creation_input_tokens: 300,
  cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
  output_tokens: 50,
};
const written = { input: 600, cached_input: 400, cache_write: 100, cache_write_1h: 200, output: 50 };
const chatUsage = {
  ...mockUsage(),
  prompt_tokens: 1_000,
  completion_tokens: 50,
  total_tokens: 1_050,
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 30 },
};
const responsesUsage = {
  input_tokens: 1_000,
  input_tokens_details: { cached_tokens: 400 },
  output_tokens: 50,
  output_tokens_details: { reasoning_tokens: 30 },
  total_tokens: 1_050,
};
const geminiUsage = {
  promptTokenCount: 1_000,
  cachedContentTokenCount: 400,
  toolUsePromptTokenCount: 50,
  candidatesTokenCount: 20,
  thoughtsTokenCount: 30,
  totalTokenCount: 1_100,
  promptTokensDetails: [
    { modality: "TEXT", tokenCount: 800 },
    { modality: "AUDIO", tokenCount: 200 },
  ],
  cacheTokensDetails: [
    { modality: "TEXT", tokenCount: 300 },
    { modality: "AUDIO", tokenCount: 100 },
  ],
};
const shownByGemini = {
  usageMetadata: {
    promptTokenCount: 1_000,
    cachedContentTokenCount: 400,
    candidatesTokenCount: 20,
    thoughtsTokenCount: 30,
  },
};
const cached = { input: 600, cached_input: 400, output: 50 };

const rows: readonly (readonly [what: string, Face, Target, Script, Usage, shown: object])[] = [
  ["cached input", chatFace, chatProvider, { usage: chatUsage }, cached, { usage: { prompt_tokens: 1_000 } }],
  [
    "reasoning",
    responsesFace,
    responsesProvider,
    { usage: responsesUsage },
    cached,
    { usage: { ...responsesUsage, cost_usd: "0.0047" } },
  ],
  ["reasoning", responsesFace, relay, { usage: chatUsage }, cached, { usage: responsesUsage }],
  ["cache writes", messagesFace, messagesProvider, { usage: cacheWrites }, written, { usage: cacheWrites }],
  [
    "a cache write without a breakdown, which counts as five minutes",
    messagesFace,
    messagesProvider,
    {
      usage: { input_tokens: 3, cache_creation_input_tokens: 40, cache_creation: null, output_tokens: 2 },
    },
    { input: 3, cache_write: 40, output: 2 },
    {},
  ],
  [
    "thinking, which is a part of the output",
    messagesFace,
    messagesProvider,
    { usage: { input_tokens: 3, output_tokens: 20, output_tokens_details: { thinking_tokens: 15 } } },
    { input: 3, output: 20 },
    {},
  ],
  [
    "a refusal that is not billed",
    messagesFace,
    messagesProvider,
    { content: [], stopReason: "refusal", usage: { input_tokens: 0, output_tokens: 0 } },
    {},
    { stop_reason: "refusal" },
  ],
  [
    "sound, cached sound and tools",
    geminiFace,
    geminiProvider,
    { usage: geminiUsage },
    { input: 550, cached_input: 400, audio_input: 100, output: 50 },
    { usageMetadata: geminiUsage },
  ],
  ["cached input", geminiFace, relay, { usage: chatUsage }, cached, shownByGemini],
  ["cached input", geminiFace, responsesProvider, { usage: responsesUsage }, cached, shownByGemini],
  [
    "cache writes",
    geminiFace,
    messagesProvider,
    { usage: cacheWrites },
    written,
    { usageMetadata: { promptTokenCount: 1_300, cachedContentTokenCount: 400 } },
  ],
];

test.each(rows.map(([what, face, target, script, usage, shown]) => ({ what, face, target, script, usage, shown })))(
  "$face.name, by the provider $target.name: each token at its price, whole and in a stream: $what",
  async ({ face, target, script, usage, shown }) => {
    target.mock?.(served).always(script);
    const { text, charge, header } = await chargeOf(face.ask(target.model, long));
    expect(JSON.parse(text)).toMatchObject(shown);
    expect(nanoUsd(header ?? "")).toBe(charge.cost);
    const streamed = await chargeOf(face.stream(target.model, long));
    expect([charge, streamed.charge]).toEqual([chargeFor(target, usage), chargeFor(target, usage)]);
  },
);

test.each([
  { face: chatFace, target: chatProvider, usage: chatUsage, prompt: 1_000 },
  { face: responsesFace, target: responsesProvider, usage: responsesUsage, prompt: 1_000 },
  { face: chatFace, target: geminiProvider, usage: geminiUsage, prompt: 1_050 },
])("$face.name, by the provider $target.name: a batch sums the tokens of its lines", async (row) => {
  const { face, target, usage, prompt } = row;
  const script: Script = { usage };
  target.mock?.(served).always(script);
  const { openai } = await served.service.account("10");
  const { path: endpoint, body } = face.ask(target.model, long);
  const requests = ["a", "b"].map((custom_id) => ({ custom_id, body }));
  const wanted = { endpoint, completion_window: "24h", requests } as unknown as BatchCreateParams;
  const { id } = await openai.batches.create(wanted);
  const batch = await eventually(async () => {
    const now = await openai.batches.retrieve(id);
    return now.completed_at ? now : undefined;
  });
  expect(batch.usage).toEqual({
    input_tokens: 2 * prompt,
    input_tokens_details: { cached_tokens: 2 * 400 },
    output_tokens: 2 * 50,
    output_tokens_details: { reasoning_tokens: 2 * 30 },
    total_tokens: 2 * (prompt + 50),
  });
});

test("a stream of messages with the prompt's usage only at its start", async () => {
  const { output_tokens: _, ...prompt } = cacheWrites;
  const start = messagesStart({ ...prompt, output_tokens: 1 });
  served.anthropic.respond({ events: [...start, messagesText("Hi"), ...messagesEnd({ output_tokens: 50 })] });
  const { charge } = await chargeOf(messagesFace.stream(messagesProvider.model, long));
  expect(charge).toEqual(chargeFor(messagesProvider, written));
});

const native = [
  { face: chatFace, target: chatProvider },
  { face: responsesFace, target: chatProvider },
  { face: messagesFace, target: messagesProvider },
  { face: geminiFace, target: geminiProvider },
];

test.each([...native, ...faces.map((face) => ({ face, target: relay }))])(
  "$face.name, by the provider $target.name: without usage an estimate is charged, marked as one",
  async ({ face, target }) => {
    const script: Script = { usage: false, text: "12345678" };
    target.mock?.(served).always(script);
    for (const ask of [face.ask, face.stream])
      expect((await chargeOf(ask(target.model, "Hello there"))).charge).toEqual(
        chargeFor(target, { input: 3, output: 2 }, true),
      );
  },
);

test.each([local, geminiProvider, messagesProvider])("$name: concurrent streams do not mix", async ({ model }) => {
  const customer = await served.service.account("100");
  const words = ["apple", "berry", "cherry", "dates"];
  const found = await Promise.all(
    words.map(async (word) => {
      const response = await send(customer, geminiFace.stream(model, word));
      const said = saidIn(geminiFace, eventsOf(geminiFace, await response.text()));
      return words.filter((each) => said.includes(each));
    }),
  );
  expect(found).toEqual(words.map((word) => [word]));
});
