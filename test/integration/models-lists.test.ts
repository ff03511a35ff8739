import { describe, expect, test } from "vitest";
import { serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile();

async function get(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(running.service.baseUrl + path, { headers });
  return { status: response.status, headers: response.headers, body: (await response.json()) as object };
}

const asAnthropic = { "anthropic-version": "2023-06-01" };
const asGoogle = { "x-goog-api-key": "nobody" };
const asGoogleClient = { "x-goog-api-client": "google-genai-sdk/3.1.0" };

/** The unique fields of each shape, in the list, in one model and in an error. */
const shapes = {
  ours: {
    list: { object: "list" },
    one: { object: "model", id: "local/chat" },
    error: { error: { type: "not_found_error", code: "model_not_found", param: "model" } },
  },
  messages: {
    list: { has_more: false },
    one: { type: "model", id: "local/chat" },
    error: { type: "error", error: { type: "not_found_error", message: "The model 'no/such' does not exist." } },
  },
  gemini: {
    list: { models: expect.any(Array) as unknown },
    one: { name: "models/local/chat" },
    error: { error: { code: 404, message: "The model 'no/such' does not exist.", status: "NOT_FOUND" } },
  },
} as const;

test.each([
  ["/v1/models", {}],
  ["/v1/models", asAnthropic],
  ["/v1/models", asGoogle],
  ["/v1beta/models", {}],
])("a bare id at %s with %j: 404 with the full id", async (path, headers) => {
  const { status, body } = await get(`${path}/Chat`, headers);
  expect([status, JSON.stringify(body)]).toEqual([
    404,
    expect.stringContaining("The model 'Chat' does not exist. Did you mean 'local/chat'?"),
  ]);
});

describe("the shape", () => {
  test.each([
    ["ours", "/v1/models", {}],
    ["ours", "/v1/models", { authorization: "Bearer nobody", "x-api-key": "nobody" }],
    ["messages", "/v1/models", asAnthropic],
    ["messages", "/v1/models", { "anthropic-version": "" }],
    ["gemini", "/v1/models", asGoogle],
    ["gemini", "/v1/models", asGoogleClient],
    ["messages", "/v1/models", { ...asAnthropic, ...asGoogle, ...asGoogleClient }],
    ["gemini", "/v1beta/models", {}],
    ["gemini", "/v1beta/models", asAnthropic],
  ] as const)("%s at %s with %j", async (shape, path, headers) => {
    const [list, one, error] = [
      await get(path, headers),
      await get(`${path}/local/chat`, headers),
      await get(`${path}/no/such`, headers),
    ];
    expect([list.status, one.status, error.status]).toEqual([200, 200, 404]);
    expect(list.body).toMatchObject(shapes[shape].list);
    expect(one.body).toMatchObject(shapes[shape].one);
    expect(error.body).toMatchObject(shapes[shape].error);
    for (const { headers } of [list, one, error]) {
      const requestId = headers.get("x-request-id");
      expect(headers.get("request-id")).toBe(shape === "messages" ? requestId : null);
      // Caches must not give one client the other's list.
      const chosen = path === "/v1/models" ? "anthropic-version, x-goog-api-key, x-goog-api-client" : "";
      expect(headers.get("vary")?.toLowerCase() ?? "").toContain(chosen);
    }
  });

  test.each(["local/chat", "local%2Fchat", "local%2fchat", "models/local/chat", "models%2Flocal%2Fchat"])(
    "Gemini's finds %s",
    async (id) => {
      for (const path of [`/v1beta/models/${id}`, `/v1/models/${id}`])
        expect((await get(path, asGoogle)).body).toMatchObject(shapes.gemini.one);
    },
  );

  test.each(["local/chat/", "local/chat%2F", "local%2Fchat/"])(
    "a slash at the end of %s is not part of the id",
    async (id) => {
      expect((await get(`/v1/models/${id}`)).body).toMatchObject(shapes.ours.one);
      expect((await get(`/v1/models/${id}`, asAnthropic)).body).toMatchObject(shapes.messages.one);
      expect((await get(`/v1beta/models/${id}`)).body).toMatchObject(shapes.gemini.one);
      for (const path of [`/v1beta/models/${id}:generateContent`, "/v1/models/local/chat:generateContent/"]) {
        const response = await fetch(running.service.baseUrl + path, { method: "POST", body: "{}" });
        expect([response.status, await response.json()]).toEqual([
          401,
          { error: expect.objectContaining({ status: "UNAUTHENTICATED" }) as object },
        ]);
      }
    },
  );

  test.each(["/v1beta/models", "/v1beta/models/local/chat"])("HEAD of %s answers as GET does", async (path) => {
    const head = await fetch(running.service.baseUrl + path, { method: "HEAD" });
    const get = await fetch(running.service.baseUrl + path);
    expect(head.status).toBe(200);
    expect(head.headers.get("content-length")).toBe(`${(await get.bytes()).length}`);
  });

  test.each([
    ["DELETE", "/v1beta/models", 405, "GET, HEAD"],
    ["POST", "/v1beta/models/local/chat", 405, "GET, HEAD"],
    ["POST", "/v1beta/models/local/chat:explain", 404, null],
    ["POST", "/v1/models/local/chat:explain", 404, null],
    ["GET", "/v1beta/models/local/chat:generateContent", 405, "POST"],
    ["DELETE", "/v1beta/models/local/chat:generateContent", 405, "POST"],
  ])("%s %s is %i in Gemini's shape", async (method, path, code, allow) => {
    const response = await fetch(running.service.baseUrl + path, { method });
    expect(response.status).toBe(code);
    expect(response.headers.get("allow")).toBe(allow);
    expect(await response.json()).toMatchObject({ error: { code, status: "NOT_FOUND" } });
  });
});
