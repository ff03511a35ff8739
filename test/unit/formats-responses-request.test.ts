import { expect, test } from "vitest";
import { noCapacity, ServiceError } from "#errors";
import { responsesCodec } from "../../shared/formats/index.ts";
import { responsesConverter } from "../../workers/conversion/responses/index.ts";
import { additional, namespaced, searching } from "../support/codex-requests.ts";
import { dataAddress, png } from "../support/media-files.ts";

type Json = Readonly<Record<string, unknown>>;

const ask = (fields: Json = {}): Json => ({ model: "gpt-5", input: "Hello", ...fields });
const parse = (body: unknown) => responsesCodec.parse(body, Buffer.byteLength(JSON.stringify(body)));
const withContent = (...content: Json[]) => ask({ input: [{ role: "user", content }] });

function refusal(body: unknown): ServiceError {
  try {
    parse(body);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error("The request was accepted.");
}

test("a request is sized by its text, its parts and its cap", () => {
  const image = dataAddress("image/png", png(30, 20));
  const body = {
    ...withContent(
      { type: "input_text", text: "What is it?" },
      { type: "input_image", image_url: image, detail: "auto" },
    ),
    instructions: "Be brief.",
    max_output_tokens: 100,
    stream: true,
  };
  const call = parse(body);
  expect(call).toMatchObject({ model: "gpt-5", stream: true, uploads: [] });
  expect(call.size).toEqual({
    inputBytes: JSON.stringify(body).length - image.length,
    messages: 2,
    parts: [
      { kind: "image", content: "image", bytes: expect.any(Number) as number, dimensions: { width: 30, height: 20 } },
    ],
    choices: 1,
    outputCap: 100,
  });
  expect(call.textBytes).toBe("What is it?Be brief.".length);
  expect([...call.features]).toEqual([["image", "input[0].content[1]"]]);
});

test("tools, results and calls count with their framing", () => {
  const tool = { type: "function", name: "look", parameters: { type: "object" }, strict: true };
  const plain = parse(ask({ tools: [tool] }));
  expect(plain.features.get("tools")).toBe("tools");
  expect(plain.textBytes).toBe(plain.size.inputBytes);
  const shell = parse(ask({ tools: [{ type: "shell", environment: { type: "local" } }] }));
  expect(shell.size.inputBytes).toBe(shell.textBytes + 1024);
  // Their converted form in chat is longer: a schema, and names prefixed with their namespaces.
  const longer = parse(
    ask({ tools: [{ type: "namespace", name: "crm", tools: [{ type: "custom", name: "write" }] }] }),
  );
  expect(longer.size.inputBytes).toBe(longer.textBytes + 2 * "crm".length + 64);
  const result = parse(ask({ input: [{ type: "function_call_output", call_id: "c", output: "ok" }] }));
  expect(result.textBytes).toBe(result.size.inputBytes);
});

test.each([
  [{ text: { format: { type: "json_object" } } }, "json", "text.format"],
  [{ include: ["message.output_text.logprobs"] }, "logprobs", "include"],
  [{ top_logprobs: 2 }, "logprobs", "top_logprobs"],
  [{ service_tier: "flex" }, "service_tier", "service_tier"],
  [{ web_search_options: {} }, "web_search", "web_search_options"],
  [{ prompt_cache_options: { ttl: "12h" } }, "cache_retention", "prompt_cache_options.ttl"],
] as const)("%j needs the feature %s", (fields, feature, field) => {
  expect(parse(ask(fields)).features.get(feature)).toBe(field);
});

test.each([{ text: { format: { type: "text" } } }, { service_tier: "auto" }, { top_logprobs: 0 }, { plugins: [] }])(
  "%j needs no feature",
  (fields) => {
    expect(parse(ask(fields)).features.size).toBe(0);
  },
);

test.each([
  ["a namespace", namespaced, "tools"],
  ["a search that it runs", searching, "tools"],
  ["tools in the input", additional, "input[0].tools"],
])("Codex, with its defaults and %s", (_, body, field) => {
  const { features } = parse({ model: "gpt-5.5", ...body });
  expect([...features]).toEqual([["tools", field]]);
});

test("a web search without access to the web is no tool", () => {
  const tools = [{ type: "web_search", external_web_access: false }];
  expect(parse(ask({ tools, include: ["web_search_call.action.sources"] })).features.size).toBe(0);
});

test.each([
  [{ previous_response_id: "resp_1" }, "previous_response_id"],
  [{ conversation: "conv_1" }, "conversation"],
  [{ conversation: { id: "conv_1" } }, "conversation"],
  [{ background: true }, "background"],
  [{ prompt: { id: "pmpt_1" } }, "prompt.id"],
  [{ container: "cntr_1" }, "container"],
  [{ prompt_cache_options: { comparison_response_id: "resp_1" } }, "prompt_cache_options.comparison_response_id"],
  [{ tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] }, "tools[0].vector_store_ids"],
  [{ tools: [{ type: "code_interpreter", container: { type: "auto" } }] }, "tools[0].container"],
  [{ input: [{ type: "item_reference", id: "msg_1" }] }, "input[0].type"],
  [{ input: [{ id: "msg_1" }] }, "input[0].id"],
  [{ input: [{ role: "user", content: [{ type: "input_image", file_id: "file-1" }] }] }, "input[0].content[0].file_id"],
  [{ input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }] }, "input[0].content[0].file_id"],
  [
    { input: [{ type: "function_call_output", call_id: "c", output: [{ type: "input_file", file_id: "file-1" }] }] },
    "input[0].output[0].file_id",
  ],
  [
    {
      input: [
        {
          role: "assistant",
          content: [{ type: "output_text", text: "x", annotations: [{ type: "file_citation", file_id: "file-1" }] }],
        },
      ],
    },
    "input[0].content[0].annotations[0].file_id",
  ],
  [
    { input: [{ type: "shell_call", call_id: "c", action: {}, environment: { container_id: "cntr_1" } }] },
    "input[0].environment.container_id",
  ],
])("data stored at the provider is refused by name: %j", (fields, param) => {
  expect(refusal(ask(fields))).toMatchObject({ code: "invalid_value", param });
});

test.each([
  [{ tools: [{ type: "web_search" }] }, "tools[0].type"],
  [{ tools: [{ type: "web_search", external_web_access: true }] }, "tools[0].type"],
  [{ tools: [{ type: "web_search_preview", external_web_access: false }] }, "tools[0].type"],
  [
    { tools: [{ type: "namespace", name: "n", tools: [{ type: "web_search", external_web_access: false }] }] },
    "tools[0].tools[0].type",
  ],
  [{ tools: [{ type: "tool_search" }] }, "tools[0].execution"],
  [{ tool_choice: { type: "web_search" } }, "tool_choice.type"],
  [{ input: [{ type: "additional_tools", tools: [{ type: "web_search" }] }] }, "input[0].tools[0].type"],
  [{ input: [{ type: "tool_search_output", call_id: "c", tools: [{ type: "mcp" }] }] }, "input[0].tools[0].type"],
  [{ input: [{ type: "tool_search_call", call_id: "c", execution: "server" }] }, "input[0].execution"],
  [{ input: [{ type: "tool_search_output", call_id: null, tools: [] }] }, "input[0].call_id"],
  [{ tools: [{ type: "mcp", server_label: "x" }] }, "tools[0].type"],
  [{ tools: [{ type: "computer_use_preview" }] }, "tools[0].type"],
  [{ tools: [{ type: "namespace", name: "crm", tools: [{ type: "mcp" }] }] }, "tools[0].tools[0].type"],
  [{ tools: [{ type: "shell", environment: { type: "container_auto" } }] }, "tools[0].environment"],
  [{ tool_choice: { type: "image_generation" } }, "tool_choice.type"],
  [{ context_management: [{ type: "compaction" }] }, "context_management"],
  [{ reasoning: { mode: "pro" } }, "reasoning.mode"],
  [{ n: 2 }, "n"],
  [{ modalities: ["audio"] }, "modalities"],
  [{ input: [{ type: "compaction", encrypted_content: "x" }] }, "input[0].type"],
  [{ input: [{ type: "mcp_call", id: "m" }] }, "input[0].type"],
  [{ input: [] }, "input"],
  [{ input: [{ role: "tool", content: "x" }] }, "input[0].role"],
  [{ input: [{ role: "user", content: [{ type: "video" }] }] }, "input[0].content[0].type"],
  [
    { input: [{ role: "user", content: [{ type: "input_image", image_url: "ftp://x" }] }] },
    "input[0].content[0].image_url",
  ],
  [{ input: [{ type: "function_call", name: "f", arguments: "{}" }] }, "input[0].call_id"],
  [{ max_output_tokens: 0 }, "max_output_tokens"],
  [{ tools: [{ type: "function" }] }, "tools[0].name"],
])("invalid or unbounded content is refused by name: %j", (fields, param) => {
  expect(refusal(ask(fields))).toMatchObject({ code: "invalid_value", param });
});

test("parameters of functions may have any name, and store may be true", () => {
  const parameters = { type: "object", properties: { file_id: { type: "string" }, container: {} } };
  expect(parse(ask({ store: true, tools: [{ type: "function", name: "f", parameters, strict: null }] })).model).toBe(
    "gpt-5",
  );
});

test("deeply nested content is refused by name", () => {
  let schema: Json = {};
  for (let depth = 0; depth < 200; depth++) schema = { properties: schema };
  expect(refusal(ask({ tools: [{ type: "function", name: "f", parameters: schema }] }))).toMatchObject({
    param: "tools",
  });
});

const placed = { mime: "image/png", address: "https://s3.example/x", base64: "QUJD" };

test("uploads are found wherever files are accepted, and resolved there", () => {
  const body = ask({
    input: [
      {
        role: "user",
        content: [
          { type: "input_image", image_url: "upl_a", detail: "low" },
          { type: "input_image", file_id: "upl_b", detail: "auto" },
          { type: "input_audio", input_audio: { data: "upl_c", format: "wav" } },
          { type: "input_file", file_id: "upl_d" },
        ],
      },
      { type: "function_call_output", call_id: "c", output: [{ type: "input_file", file_data: "upl_e" }] },
    ],
  });
  const refs = [
    { id: "upl_a", param: "input[0].content[0].image_url", kind: "image" },
    { id: "upl_b", param: "input[0].content[1].file_id", kind: "image" },
    { id: "upl_c", param: "input[0].content[2].input_audio.data", kind: "audio" },
    { id: "upl_d", param: "input[0].content[3].file_id" },
    { id: "upl_e", param: "input[1].output[0].file_data" },
  ];
  expect(parse(body).uploads).toEqual(refs);
  const kinds = ["image", "image", "audio", "file", "file"];
  expect(parse(body).size.parts).toEqual(kinds.map((kind, n) => ({ kind, upload: refs[n]?.id })));
  const bytes = { ...placed, mime: "audio/mpeg", address: "data:audio/mpeg;base64,QUJD" };
  const seen: string[] = [];
  const whole = responsesConverter.resolveUploads(body, ({ id, param }) => {
    seen.push(param);
    return id === "upl_a" || id === "upl_d" ? placed : bytes;
  });
  expect(seen).toEqual(refs.map(({ param }) => param));
  expect(whole["input"]).toEqual([
    {
      role: "user",
      content: [
        { type: "input_image", image_url: placed.address, detail: "low" },
        { type: "input_image", image_url: bytes.address, detail: "auto" },
        { type: "input_audio", input_audio: { data: "QUJD", format: "mp3" } },
        { type: "input_file", file_url: placed.address },
      ],
    },
    {
      type: "function_call_output",
      call_id: "c",
      output: [{ type: "input_file", filename: "upl_e", file_data: bytes.address }],
    },
  ]);
});

test("an error has the common body, and in a stream is an event", () => {
  const error = noCapacity("No upstream is free.");
  expect(JSON.parse(responsesCodec.error(error, "req_1"))).toEqual({
    error: { message: "No upstream is free.", type: "server_error", code: "no_capacity", param: null },
    request_id: "req_1",
  });
  const [line, data] = responsesCodec.streamError(error, "req_1", true).split("\n");
  expect(line).toBe("event: error");
  expect(JSON.parse((data as string).slice("data: ".length))).toEqual({
    type: "error",
    code: "no_capacity",
    message: "No upstream is free.",
    param: null,
    sequence_number: 2_147_483_647,
  });
  expect(responsesCodec.ping).toBe(": ping\n\n");
});
