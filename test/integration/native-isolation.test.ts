import { describe, expect, test } from "vitest";
import { pngOf, uploaded } from "../support/generation-setup.ts";
import {
  type Asked,
  chatFace,
  type Face,
  geminiFace,
  heard,
  messagesFace,
  refusalIn,
  refusalOf,
  relayedModel,
  responsesFace,
  send,
  withRelayedModel,
} from "../support/native-formats.ts";
import { expectUntouched, localModel, providerModel, type Refusal, serviceOfFile } from "../support/service-setup.ts";

// One mock serves as every provider: a refused request reaches none of them.
const running = serviceOfFile({ CATALOG_FILE: withRelayedModel("anthropic", "gemini") });
const responsesModel = "gpt-4.1-mini";
const claude = "claude-haiku-4-5";
const gemini = "gemini-3.8-flash";

type Row = readonly [param: string, field: object];
const image = (more: object) => ({ type: "input_image", ...more });
const saying = (...content: object[]) => [{ type: "message", role: "user", content }];
const fileOf = (id: string) => ({ source: { type: "file", file_id: id } });
const asked = (...content: object[]) => [{ role: "user", content }];
const parts = (...all: object[]) => ({ contents: [{ role: "user", parts: all }] });
const link = (fileUri: string) => parts({ fileData: { fileUri, mimeType: "image/png" } });
const linkAt = "contents[0].parts[0].fileData.fileUri";

/**
 * Fields of each format that refer to state at the provider, whose key all tenants share; the unit tests of requests
 * have the others.
 */
const rows: readonly (readonly [face: Face, model: string, rows: readonly Row[]])[] = [
  [
    chatFace,
    providerModel,
    [["messages[0].content[0].file.file_id", { messages: asked({ type: "file", file: { file_id: "file-1" } }) }]],
  ],
  [
    responsesFace,
    responsesModel,
    [
      ["previous_response_id", { previous_response_id: "resp_1" }],
      ["conversation", { conversation: "conv_1" }],
      [
        "input[0].content[0].file_id",
        { input: saying({ type: "input_file", file_id: "file-1", file_data: "data:text/plain;base64,aGk=" }) },
      ],
      ["input[0].id", { input: [{ type: "item_reference", id: "msg_1" }] }],
      ["input[0].type", { input: [{ type: "file_search_call", id: "fs_1", queries: [], results: [] }] }],
      ["tools[0].container", { tools: [{ type: "code_interpreter", container: { type: "auto", file_ids: ["f"] } }] }],
    ],
  ],
  [
    messagesFace,
    claude,
    [
      ["messages[0].content[0].source.type", { messages: asked({ type: "image", ...fileOf("file_1") }) }],
      ["container", { container: { skills: [{ type: "custom", skill_id: "skill_1" }] } }],
      ["thread", { thread: { id: "thread_1" } }],
      ["user_profile_id", { user_profile_id: "profile_1" }],
      ["fallback_credit_token", { fallback_credit_token: "token" }],
    ],
  ],
  [
    geminiFace,
    gemini,
    [
      ["cachedContent", { cachedContent: "cachedContents/1" }],
      ["cachedContent", { cached_content: "cachedContents/1" }],
      ["generationConfig.generationOutputConfig", { generationConfig: { generation_output_config: {} } }],
      [linkAt, link("files/abc")],
      [linkAt, parts({ file_data: { file_uri: "files/abc" } })],
      [
        "contents[0].parts[0].functionResponse.parts[0].fileData.fileUri",
        parts({ functionResponse: { name: "f", response: {}, parts: [{ fileData: { fileUri: "files/abc" } }] } }),
      ],
      [
        "systemInstruction.parts[0].fileData.fileUri",
        { systemInstruction: { parts: [{ fileData: { fileUri: "files/abc" } }] } },
      ],
      ["tools[0].fileSearch", { tools: [{ fileSearch: { fileSearchStoreNames: ["fileSearchStores/1"] } }] }],
    ],
  ],
];

const cases = rows.flatMap(([face, model, rows]) =>
  rows.map(([param, field]) => ({ face, model, param, field, shown: JSON.stringify(field) })),
);
/** Formats whose errors name the field only in the message. */
const named = (param: string) => new RegExp(`^${RegExp.escape(param)}\\b`);

test.each(cases)(
  "$face.name: $param is refused, and reaches no provider: $shown",
  async ({ face, model, param, field }) => {
    const customer = await running.service.account("1");
    const refusal: Refusal = {
      status: 400,
      type: "invalid_request_error",
      code: "invalid_value",
      param,
      message: named(param),
    };
    // Models of the provider itself, of a relay, and local ones: none may have stored state.
    for (const each of [model, relayedModel, localModel]) {
      const { path, body } = face.ask(each, "hi");
      expect(await refusalIn(face, await send(customer, { path, body: { ...body, ...field } }))).toEqual(
        refusalOf(face, refusal),
      );
    }
    await expectUntouched(running.service, customer, "1.00");
    expect(running.provider.requests).toEqual([]);
  },
);

describe("counting refuses what a call refuses", () => {
  test.each([
    [
      messagesFace,
      "/v1/messages/count_tokens",
      "container",
      { ...messagesFace.ask(claude, "hi").body, container: "c" },
    ],
    [
      messagesFace,
      "/v1/messages/count_tokens",
      "messages[0].content[0].source.type",
      { model: claude, messages: asked({ type: "image", ...fileOf("file_1") }) },
    ],
    [geminiFace, `/v1beta/models/${gemini}:countTokens`, linkAt, link("files/abc")],
    [
      geminiFace,
      `/v1beta/models/${gemini}:countTokens`,
      "generateContentRequest.cachedContent",
      { generateContentRequest: { ...geminiFace.ask(gemini, "hi").body, cachedContent: "cachedContents/1" } },
    ],
  ] as const)("%o %s: %s", async (face, path, param, body) => {
    const customer = await running.service.account("1");
    const message = named(param);
    const refusal = { status: 400, type: "invalid_request_error", code: "invalid_value", param, message };
    expect(await refusalIn(face, await customer.post(path, body))).toEqual(refusalOf(face, refusal));
    expect(running.provider.requests).toEqual([]);
  });
});

describe("store", () => {
  const stored = (face: Face, model: string, store?: boolean) => {
    const { path, body } = face.ask(model, "hi");
    return { path, body: { ...body, ...(store !== undefined && { store }) } } satisfies Asked;
  };

  test.each([true, false, undefined])("%s: the provider receives false, and the answer says so", async (store) => {
    const customer = await running.service.account("1");
    const native = await send(customer, stored(responsesFace, responsesModel, store));
    expect([native.status, await native.json()]).toEqual([200, expect.objectContaining({ store: false })]);
    const streamed = await send(customer, responsesFace.stream(responsesModel, "hi", { store }));
    expect(await streamed.text()).not.toContain('"store":true');
    const chat = await send(customer, stored(chatFace, providerModel, store));
    expect(chat.status).toBe(200);
    expect(running.provider.requests.map(({ path, body }) => [path, body["store"]])).toEqual([
      ["/v1/responses", false],
      ["/v1/responses", false],
      ["/v1/chat/completions", false],
    ]);
  });

  test.each([localModel, relayedModel])("%s: accepted, and the response says false", async (model) => {
    const customer = await running.service.account("1");
    const response = await send(customer, stored(responsesFace, model, true));
    expect([response.status, await response.json()]).toEqual([200, expect.objectContaining({ store: false })]);
    const streamed = await (await send(customer, responsesFace.stream(model, "hi", { store: true }))).text();
    expect(streamed).toContain('"store":false');
    expect(streamed).not.toContain('"store":true');
    // A provider that does not know the field does not receive it.
    const sent = running.provider.requests.map(({ body }) => "store" in body);
    expect(sent).toEqual(model === relayedModel ? [false, false] : []);
  });
});

test.each([
  ["GET", "/v1/responses/resp_1"],
  ["DELETE", "/v1/responses/resp_1"],
  ["POST", "/v1/responses/resp_1/cancel"],
  ["GET", "/v1/responses/resp_1/input_items"],
  ["POST", "/v1/conversations"],
  ["GET", "/v1/files/file-1/content"],
  ["GET", "/v1/vector_stores/vs_1"],
  ["GET", "/v1/chat/completions/chatcmpl-1"],
  ["GET", "/v1/messages/batches/batch_1/results"],
  ["GET", "/v1beta/files/abc"],
  ["GET", "/v1beta/cachedContents/1"],
  ["POST", "/v1beta/cachedContents"],
  ["POST", "/v1beta/interactions"],
])("%s %s: stored provider state cannot be requested", async (method, path) => {
  const { key } = await running.service.account("1");
  const response = await fetch(running.service.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${key}` },
    ...(method === "POST" && { body: "{}" }),
  });
  expect(response.status).toBe(404);
  expect(running.provider.requests).toEqual([]);
});

describe("uploads", () => {
  const naming: readonly (readonly [Face, param: string, (id: string) => object])[] = [
    [
      chatFace,
      "messages[0].content[0].image_url.url",
      (id) => ({ messages: asked({ type: "image_url", image_url: { url: id } }) }),
    ],
    [responsesFace, "input[0].content[0].file_id", (id) => ({ input: saying(image({ file_id: id })) })],
    [responsesFace, "input[0].content[0].image_url", (id) => ({ input: saying(image({ image_url: id })) })],
    [
      messagesFace,
      "messages[0].content[0].source.file_id",
      (id) => ({ messages: asked({ type: "image", ...fileOf(id) }) }),
    ],
    [geminiFace, linkAt, link],
  ];

  test.each(naming.map(([face, param, body]) => ({ face, param, body })))(
    "$face.name: of one's own, in $param, and of nobody else's",
    async ({ face, param, body }) => {
      const [owner, other] = [await running.service.account("1"), await running.service.account("1")];
      const file = pngOf(3, 2);
      const id = await uploaded(running.service, owner, file);
      const { path, body: rest } = face.ask(relayedModel, "hi");
      const call: Asked = { path, body: { ...rest, ...body(id) } };
      expect(await refusalIn(face, await send(other, call))).toEqual(
        refusalOf(face, {
          status: 404,
          type: "not_found_error",
          code: "upload_not_found",
          param,
          message: new RegExp(`There is no upload '${id}'`),
        }),
      );
      await expectUntouched(running.service, other, "1.00");
      expect(running.provider.requests).toEqual([]);
      expect((await send(owner, call)).status).toBe(200);
      expect(heard(running.provider)).toContain(file.toString("base64"));
      expect(heard(running.provider)).not.toContain(id);
    },
  );
});
