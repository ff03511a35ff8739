import { expect, test } from "vitest";
import { assembled, type Chunk, chat, clock, sayOf, stream } from "../support/local-setup.ts";
import { mp3, pdf, wav } from "../support/media-files.ts";

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
};

test("it quotes the prompt, the same for the same request, under another id", async () => {
  const answer = await chat("Where is Oslo?");
  expect(sayOf(answer)).toBe('You said: "Where is Oslo?". This is a model for tests: it repeats what it reads.');
  expect(answer.choices[0]?.finish_reason).toBe("stop");
  const again = await chat("Where is Oslo?");
  expect(again.id).not.toBe(answer.id);
  expect({ ...again, id: answer.id }).toEqual(answer);
});

test("the prompt counts 3 tokens a message and one for each word of up to 8 letters", async () => {
  const { usage } = await chat("one two internationally");
  expect(usage).toEqual({
    prompt_tokens: 3 + 4,
    completion_tokens: usage.completion_tokens,
    total_tokens: usage.completion_tokens + 7,
  });
});

test.each([
  ["words", "Tell me of Oslo", {}],
  ["several choices", "Tell me of Oslo", { n: 3, seed: 7 }],
  ["a call", "get weather in Oslo", { tools: [weather] }],
  ["a cut answer", "Tell me of Oslo", { max_tokens: 4 }],
  ["a cut call", "get weather in Oslo", { tools: [weather], max_tokens: 3 }],
  ["JSON", "Tell me of Oslo", { response_format: { type: "json_object" } }],
])("a stream has the text of the whole answer: %s", async (_, prompt, rest) => {
  const whole = await chat(prompt, rest);
  const { choices, usage } = await assembled(stream(prompt, rest));
  expect(choices).toEqual(
    whole.choices.map(({ message, finish_reason }) => ({
      content: message.content ?? "",
      calls: (message.tool_calls ?? []).map(({ id, function: called }) => ({ id, ...called })),
      finish: finish_reason,
    })),
  );
  expect(usage).toEqual(whole.usage);
});

test("a stream sends one token a chunk, the role first, the usage last", async () => {
  const chunks = await Array.fromAsync(stream("Hi"));
  expect(chunks[0]?.choices[0]?.delta.role).toBe("assistant");
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: chunks.length - 3 } });
  expect(chunks.slice(0, -1).every(({ choices }) => choices.length === 1)).toBe(true);
});

test("several choices differ", async () => {
  const { choices } = await chat("Hi", { n: 3 });
  expect(new Set(choices.map(({ message }) => message.content)).size).toBe(3);
});

test.each(["max_tokens", "max_completion_tokens"])("%s cuts the answer at that token", async (field) => {
  const { choices, usage } = await chat("Where is Oslo?", { [field]: 3 });
  expect(choices[0]).toMatchObject({ message: { content: 'You said: "Where' }, finish_reason: "length" });
  expect(usage.completion_tokens).toBe(3);
});

test("a cap of exactly the answer's length does not cut it", async () => {
  const { usage } = await chat("Where is Oslo?");
  const { choices } = await chat("Where is Oslo?", { max_tokens: usage.completion_tokens });
  expect(choices[0]?.finish_reason).toBe("stop");
});

test("the answer ends before the first stop sequence", async () => {
  const { choices } = await chat("Where is Oslo?", { stop: ["tests", " Oslo"] });
  expect(choices[0]).toMatchObject({ message: { content: 'You said: "Where is' }, finish_reason: "stop" });
});

test("only text is read of content parts, system prompts are not quoted", async () => {
  const messages = [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "one" },
        { type: "text", text: "two" },
      ],
    },
  ];
  expect(sayOf(await chat("", { messages }))).toContain('"one\ntwo"');
});

const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const bytesOf = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))));
const zeros = (length: number) => Array.from({ length }, () => 0);

test.each([
  ["PNG", pixel, "a PNG image of 1 x 1 pixels, 70 bytes"],
  ["GIF", bytesOf("GIF89a", [0x40, 0x01, 0xf0, 0x00], zeros(20)), "a GIF image of 320 x 240 pixels, 30 bytes"],
  [
    "JPEG",
    bytesOf([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc0, 0, 11, 8, 0x01, 0xe0, 0x02, 0x80], zeros(20)),
    "a JPEG image of 640 x 480 pixels",
  ],
  [
    "WebP (lossy)",
    bytesOf("RIFF....WEBPVP8 ", zeros(10), [0x20, 0x03, 0x58, 0x02]),
    "a WebP image of 800 x 600 pixels",
  ],
  [
    "WebP (lossless)",
    bytesOf("RIFF....WEBPVP8L", zeros(4), [0x2f, 0x1f, 0xc3, 0x95, 0], zeros(6)),
    "a WebP image of 800 x 600",
  ],
  [
    "WebP (extended)",
    bytesOf("RIFF....WEBPVP8X", zeros(8), [0x1f, 3, 0, 0x57, 2, 0]),
    "a WebP image of 800 x 600 pixels",
  ],
])("it says the size of a %s", async (_, image, expected) => {
  const url = typeof image === "string" ? image : `data:image/any;base64,${image.toString("base64")}`;
  const answer = await chat([
    { type: "text", text: "What is it?" },
    { type: "image_url", image_url: { url } },
  ]);
  expect(sayOf(answer)).toContain(`I see ${expected}`);
  expect(answer.usage.prompt_tokens).toBe(3 + 3 + 256);
});

test("an image elsewhere is named and not fetched", async () => {
  const answer = await chat([{ type: "image_url", image_url: { url: "https://example.com/cat.png" } }]);
  expect(sayOf(answer)).toBe("I see an image at https://example.com/cat.png (not fetched: this model has no network).");
});

const address = (type: string, bytes: Buffer) => `data:${type};base64,${bytes.toString("base64")}`;
const audio = (bytes: Buffer, format: string) => ({
  type: "input_audio",
  input_audio: { data: bytes.toString("base64"), format },
});
const file = (file_data: string) => ({ type: "file", file: { filename: "a", file_data } });
const twoPages = pdf(["First page", "Second page"]);
const note = Buffer.from("Bring milk");

test.each([
  ["a WAV recording", audio(wav(2.5), "wav"), "I hear a recording (wav) of 2.5 seconds, 80044 bytes.", 25, 25],
  ["an MP3 recording", audio(mp3(3), "mp3"), /^I hear a recording \(mp3\) of 3\.\d+ seconds, 47955 bytes\.$/, 31, 31],
  ["a recording as a file", file(address("audio/x-wav", wav(1))), "I hear a recording (wav) of 1 seconds", 10, 10],
  ["a PDF", file(address("application/pdf", twoPages)), `I read a PDF file of 2 pages, ${twoPages.length} bytes.`, 512],
  ["a PDF as bare base64", file(twoPages.toString("base64")), "I read a PDF file of 2 pages", 512],
  ["a text file", file(address("text/plain", note)), 'I read a text file of 10 bytes: "Bring milk".', 2],
  ["an image as a file", file(pixel), "I see a PNG image of 1 x 1 pixels, 70 bytes.", 256],
  ["a file by link", file("https://example.com/a.pdf"), "I read a file at https://example.com/a.pdf (not fetched", 256],
])("it says what it reads of %s, and counts it", async (_, part, expected, tokens, audioTokens?: number) => {
  const { choices, usage } = await chat([part]);
  expect(choices[0]?.message.content).toMatch(expected);
  expect(usage).toMatchObject({ prompt_tokens: 3 + tokens });
  expect(usage.prompt_tokens_details?.audio_tokens).toBe(audioTokens);
});

test("media of earlier messages count and are not described", async () => {
  const messages = [
    { role: "user", content: [audio(wav(2), "wav")] },
    { role: "assistant", content: "Yes." },
    { role: "user", content: "And?" },
  ];
  const answer = await chat("", { messages });
  expect(sayOf(answer)).not.toContain("recording");
  expect(answer.usage).toMatchObject({
    prompt_tokens: 3 * 3 + 2 + 20,
    prompt_tokens_details: { audio_tokens: 20 },
  });
});

test.each(["data:image/png;base64,AAAA", "data:image/svg+xml,<svg/>", "data:;base64,"])(
  "%s is refused, naming the part",
  async (url) => {
    await expect(chat([{ type: "image_url", image_url: { url } }])).rejects.toMatchObject({
      kind: "refused",
      param: "messages[0].content[0].image_url",
    });
  },
);

test.each([
  ["error:400", "invalid_value"],
  ["error:429", "rate_limit_exceeded"],
  ["error:502", "upstream_error"],
  ["error:503", "no_capacity"],
  ["error:504", "upstream_timeout"],
])("%s fails with that status", async (prompt, code) => {
  await expect(chat(prompt)).rejects.toMatchObject({ code, status: Number(prompt.slice(6)) });
  await expect(Array.fromAsync(stream(prompt))).rejects.toMatchObject({ code });
});

test("error: with another number says which there are, and a longer message is no trigger", async () => {
  await expect(chat("error:418")).rejects.toMatchObject({
    kind: "refused",
    message: expect.stringMatching(/400, 429/) as string,
  });
  expect(sayOf(await chat("error:503 please"))).toContain("error:503 please");
});

test("slow:<ms> delays the first token by the clock, and ends with its caller", async () => {
  let done = false;
  const answer = chat("slow:5000").then(() => {
    done = true;
  });
  clock.advance(4_999);
  await Promise.resolve();
  expect(done).toBe(false);
  clock.advance(1);
  await answer;

  const caller = new AbortController();
  const aborted = chat("slow:5000", {}, caller.signal);
  const reason = new Error("disconnected");
  caller.abort(reason);
  await expect(aborted).rejects.toBe(reason);
  expect(clock.pending()).toBe(0);
});

test("tokens:<n> answers with n tokens, or what the cap leaves", async () => {
  expect((await chat("tokens:1000")).usage.completion_tokens).toBe(1000);
  expect(await chat("tokens:1000", { max_tokens: 10 })).toMatchObject({
    choices: [{ finish_reason: "length" }],
    usage: { completion_tokens: 10 },
  });
});

test("stream-error:<n> breaks the stream after n chunks, and fails a JSON answer", async () => {
  const seen: Chunk[] = [];
  const read = async () => {
    for await (const chunk of stream("stream-error:3")) seen.push(chunk);
  };
  await expect(read()).rejects.toMatchObject({ code: "upstream_error" });
  expect(seen).toHaveLength(3);
  await expect(chat("stream-error:3")).rejects.toMatchObject({ code: "upstream_error" });
});

test("a long answer yields to the event loop, and ends with its caller", async () => {
  const caller = new AbortController();
  let turns = 0;
  const count = () => {
    turns++;
    if (turns < 3) setImmediate(count);
    else caller.abort(new Error("disconnected"));
  };
  setImmediate(count);
  await expect(Array.fromAsync(stream("tokens:50000", {}, caller.signal))).rejects.toThrow("disconnected");
});

const tooLong = (tokens: number) => ({
  kind: "refused",
  code: "context_length_exceeded",
  param: "messages",
  message: `The prompt is too long: this model's maximum context length is 131072 tokens, and the prompt has ${tokens}.`,
});

test("a prompt of the context length is answered, and one token more is refused", async () => {
  const { usage } = await chat("word ".repeat(131_072 - 3 - 1));
  expect(usage.prompt_tokens).toBe(131_072);
  await expect(chat("word ".repeat(131_072 - 3))).rejects.toMatchObject(tooLong(131_073));
  const endless = file(address("application/pdf", Buffer.from("%PDF-1.4 <</Type/Pages/Count 9000>>")));
  await expect(chat([endless])).rejects.toMatchObject(tooLong(3 + 9000 * 256));
});

test("a prompt of 24 MB is counted without blocking the event loop", async () => {
  let turns = 0;
  const count = () => {
    turns++;
    setImmediate(count).unref();
  };
  setImmediate(count).unref();
  await expect(chat("word ".repeat(5_000_000))).rejects.toMatchObject({ code: "context_length_exceeded" });
  expect(turns).toBeGreaterThan(10);
});

test("a field of the wrong type is refused naming it", async () => {
  await expect(chat("Hi", { tools: [{ type: "function", function: {} }], tool_choice: 7 })).rejects.toMatchObject({
    kind: "refused",
    param: expect.stringMatching(/^tool/) as string,
  });
});
