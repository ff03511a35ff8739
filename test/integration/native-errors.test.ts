import { describe, expect, test } from "vitest";
import {
  type Asked,
  bare,
  type Face,
  faces,
  messagesFace,
  refusalIn,
  refusalOf,
  send,
  withRelayedModel,
} from "../support/native-formats.ts";
import { expectUntouched, localModel, type Refusal, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ CATALOG_FILE: withRelayedModel() });
const limitBytes = 25 * 1024 * 1024;
const invalid = (param: string | null, message?: RegExp): Refusal => ({
  status: 400,
  type: "invalid_request_error",
  code: "invalid_value",
  param,
  ...(message && { message }),
});
const notSupported: Refusal = {
  status: 400,
  type: "invalid_request_error",
  code: "model_not_supported",
  param: "model",
  message: /is served at/,
};
const noKey: Refusal = { status: 401, type: "authentication_error", code: "invalid_api_key" };
const noModel: Refusal = { status: 404, type: "not_found_error", code: "model_not_found", param: "model" };
const limited: Refusal = { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" };

/** An invalid field of each format, and its name in the error: Messages and Gemini have it only in the message. */
const wrongField: Readonly<Record<string, readonly [field: object, param: string]>> = {
  chat: [{ max_tokens: "many" }, "max_tokens"],
  responses: [{ max_output_tokens: "many" }, "max_output_tokens"],
  messages: [{ max_tokens: "many" }, "max_tokens"],
  gemini: [{ generationConfig: { maxOutputTokens: "many" } }, "generationConfig.maxOutputTokens"],
};
/** The fields that cap the response at this many tokens. */
const capped = (face: Face, tokens: number): object =>
  ({
    chat: { max_tokens: tokens },
    responses: { max_output_tokens: tokens },
    messages: { max_tokens: tokens },
    gemini: { generationConfig: { maxOutputTokens: tokens } },
  })[face.format];

describe.each(faces)("$name", (face) => {
  const hi = face.ask(localModel, "Hello there");
  const variants: readonly (readonly [string, Asked])[] = [
    ["JSON", hi],
    ["stream", face.stream(localModel, "Hello there")],
  ];

  describe.each(variants)("%s", (_, asked) => {
    test("an invalid field is named, counts as a request and costs nothing", async () => {
      const customer = await running.service.account("1", { limits: { requests_per_minute: 2 } });
      const [wrong, param] = wrongField[face.format] ?? [{}, ""];
      const response = await send(customer, { ...asked, body: { ...asked.body, ...wrong } });
      expect(await refusalIn(face, response)).toEqual(
        refusalOf(face, invalid(param, new RegExp(param.replace(".", "\\.")))),
      );
      await expectUntouched(running.service, customer, "1.00");
      const good = await send(customer, hi);
      expect([good.status, good.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "0"]);
    });

    test.each([
      ["broken", '{"model": ', /not valid JSON/],
      ["empty", "", /empty/],
      ["a list", "[]", /object/],
    ])("a body that is not a JSON object: %s", async (_, body, message) => {
      const customer = await running.service.account("1");
      expect(await refusalIn(face, await customer.post(asked.path, body))).toEqual(
        refusalOf(face, invalid(null, message)),
      );
    });

    test("insufficient balance: 402 says what the balance covers, and must not be retried", async () => {
      const customer = await running.service.account("0.001");
      const response = await send(customer, { ...asked, body: { ...asked.body, ...capped(face, 8_000) } });
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect(await refusalIn(face, response)).toEqual(
        refusalOf(face, {
          status: 402,
          type: "insufficient_quota",
          code: "insufficient_balance",
          message: /You asked for up to 8000 tokens; the balance covers \d+\. Top up in the dashboard\.$/,
        }),
      );
      await expectUntouched(running.service, customer, "0.001");
    });

    test("a frozen account: 403", async () => {
      const customer = await running.service.account("1");
      await running.service.admin("PATCH", `/accounts/${customer.id}`, { frozen: true });
      const frozen: Refusal = { status: 403, type: "permission_error", code: "account_frozen" };
      expect(await refusalIn(face, await send(customer, asked))).toEqual(refusalOf(face, frozen));
    });

    test("a limit is reached: 429 with Retry-After; a request that can never pass must not be retried", async () => {
      const customer = await running.service.account("1", { limits: { requests_per_minute: 1 } });
      expect((await send(customer, hi)).status).toBe(200);
      const response = await send(customer, asked);
      expect(response.headers.get("x-should-retry")).toBeNull();
      expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("0");
      expect(await refusalIn(face, response)).toEqual(
        refusalOf(face, { ...limited, message: /requests a minute, limit 1/ }),
      );
      const small = await running.service.account("1", { limits: { tokens_per_minute: 10 } });
      const never = await send(small, { ...asked, body: { ...asked.body, ...capped(face, 100) } });
      expect(never.headers.get("x-should-retry")).toBe("false");
      expect(await refusalIn(face, never)).toEqual(refusalOf(face, { ...limited, message: /can never pass/ }));
    });

    test("over 25 MB: 413", async () => {
      const customer = await running.service.account("1");
      const response = await customer.post(asked.path, JSON.stringify({ x: "x".repeat(limitBytes) }));
      expect(await refusalIn(face, response)).toEqual(
        refusalOf(face, {
          status: 413,
          type: "invalid_request_error",
          code: "request_too_large",
          message: /26214400 bytes/,
        }),
      );
    });

    test("no key, an empty key, an unknown key: 401 before the body is parsed", async () => {
      const nonsense = { path: asked.path, body: {} };
      expect(await refusalIn(face, await bare(running.service, nonsense))).toEqual(refusalOf(face, noKey));
      const unknown = `live_${"a".repeat(40)}`;
      const places = [(key: string) => ({ headers: { authorization: `Bearer ${key}` } }), ...Object.values(face.keys)];
      for (const place of places)
        for (const key of ["", unknown, "sk-123"]) {
          const { headers, query } = { query: undefined, ...place(key) };
          const path = query ? `${asked.path}${asked.path.includes("?") ? "&" : "?"}${query}` : asked.path;
          expect(await refusalIn(face, await bare(running.service, { ...nonsense, path }, headers))).toEqual(
            refusalOf(face, noKey),
          );
        }
    });
  });

  test("a revoked key: 401", async () => {
    const customer = await running.service.account("1");
    expect((await send(customer, hi)).status).toBe(200);
    const keys = await running.service.admin<{ data: { id: string }[] }>("GET", `/accounts/${customer.id}/keys`);
    await running.service.admin("DELETE", `/keys/${keys.data[0]?.id}`);
    expect(await refusalIn(face, await send(customer, hi))).toEqual(refusalOf(face, noKey));
  });

  test("the key is accepted wherever the format's clients put it", async () => {
    const { key } = await running.service.account("1");
    for (const place of Object.values(face.keys)) {
      const { headers, query } = place(key);
      const path = query ? `${hi.path}?${query}` : hi.path;
      expect((await bare(running.service, { ...hi, path }, headers)).status).toBe(200);
    }
    expect((await bare(running.service, hi, { authorization: `Bearer ${key}` })).status).toBe(200);
  });

  test("a key where another format's clients put it is ignored", async () => {
    const { key } = await running.service.account("1");
    const others = faces.flatMap(({ keys }) => Object.entries(keys)).filter(([place]) => !(place in face.keys));
    for (const [, place] of others) {
      const { headers, query } = place(key);
      const path = query ? `${hi.path}?${query}` : hi.path;
      expect(await refusalIn(face, await bare(running.service, { ...hi, path }, headers))).toEqual(
        refusalOf(face, noKey),
      );
    }
  });

  test("an unknown model, and one without an upstream: 404", async () => {
    const customer = await running.service.account("1");
    for (const model of ["nobody/nothing", "nothing", "mistral/mistral-large"])
      expect(await refusalIn(face, await send(customer, face.ask(model, "hi")))).toEqual(
        refusalOf(face, {
          ...noModel,
          message: new RegExp(`'${model}'`),
        }),
      );
  });

  test("a bare or misspelled id: 404 with the id of the model that is meant, if this format serves it", async () => {
    const customer = await running.service.account("1");
    const meant = /^The model '\S+' does not exist\. Did you mean 'local\/relayed'\?$/;
    for (const model of ["relayed", "azure/relayed", "local/Relayed-2026-01-01", "relayed:free"])
      expect(await refusalIn(face, await send(customer, face.ask(model, "hi")))).toEqual(
        refusalOf(face, { ...noModel, message: meant }),
      );
    // Unavailable are models of other endpoints, and models without a key here.
    for (const model of ["transcription", "claude-sonnet-4.6"])
      expect(await refusalIn(face, await send(customer, face.ask(model, "hi")))).toEqual(
        refusalOf(face, { ...noModel, message: /does not exist\.$/ }),
      );
  });

  test("a model of another endpoint: 400", async () => {
    const customer = await running.service.account("1");
    expect(await refusalIn(face, await send(customer, face.ask("local/embeddings", "hi")))).toEqual(
      refusalOf(face, notSupported),
    );
  });

  test("an unknown encoding: 415", async () => {
    const customer = await running.service.account("1");
    const response = await customer.post(hi.path, hi.body, { headers: { "content-encoding": "zip" } });
    expect(await refusalIn(face, response)).toEqual(
      refusalOf(face, {
        status: 415,
        type: "invalid_request_error",
        code: "unsupported_media_type",
      }),
    );
  });

  test("an answer carries the request id, and the limits", async () => {
    const customer = await running.service.account("1");
    const response = await send(customer, hi);
    const id = response.headers.get("x-request-id");
    expect(id).toMatch(/^req_/);
    expect(response.headers.get("request-id")).toBe(face.format === "messages" ? id : null);
    expect(response.headers.get("x-ratelimit-limit-requests")).toMatch(/^\d+$/);
    expect(response.headers.get("x-xm-cost-usd")).toMatch(/^0\.\d+$/);
  });
});

test.each(["openai/gpt-4.1-mini", "gpt-4.1-mini"])("messages: another provider's model, %s, is 400", async (model) => {
  const customer = await running.service.account("1");
  expect(await refusalIn(messagesFace, await send(customer, messagesFace.ask(model, "hi")))).toEqual(
    refusalOf(messagesFace, {
      ...notSupported,
      message: /'openai\/gpt-4\.1-mini' at \/v1\/chat\/completions/,
    }),
  );
});

test.each([
  ["/v1/messages", "x-api-key", { model: "local/chat", max_tokens: 10, messages: [{ role: "user", content: "Hi" }] }],
  ["/v1beta/models/local/chat:generateContent", "x-goog-api-key", { contents: [{ parts: [{ text: "Hi" }] }] }],
])("%s with an empty %s beside a bearer token uses the bearer token", async (path, name, body) => {
  const customer = await running.service.account("1");
  expect((await customer.post(path, body, { headers: { [name]: "" } })).status).toBe(200);
});

test("a long model name is not repeated in the error", async () => {
  const customer = await running.service.account("1");
  const long = "m".repeat(100_000);
  const response = await customer.post(`/v1/messages`, {
    model: long,
    max_tokens: 10,
    messages: [{ role: "user", content: "Hi" }],
  });
  expect([response.status, (await response.text()).length < 500]).toEqual([404, true]);
});

describe("x-ignored-params", () => {
  const greeting = { model: localModel, max_tokens: 20, messages: [{ role: "user", content: "Hi" }] };

  test.each([false, true])("hints that the upstream does not support are named, stream: %s", async (stream) => {
    const customer = await running.service.account("1");
    const response = await customer.post("/v1/messages", { ...greeting, top_k: 3, metadata: { user_id: "u" }, stream });
    expect([response.status, response.headers.get("x-ignored-params")]).toEqual([200, "top_k, metadata"]);
    await response.text();
  });

  test("nothing is named when everything is supported", async () => {
    const customer = await running.service.account("1");
    const response = await customer.post("/v1/messages", greeting);
    expect([response.status, response.headers.get("x-ignored-params")]).toEqual([200, null]);
  });

  test("names that do not fit into a header are not named, and the call succeeds", async () => {
    const customer = await running.service.account("1");
    const hostile = { "a\r\nx-evil: 1": 1, "\u{1F600}": 1, ["n".repeat(10_000)]: 1, plain_one: 1 };
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`field_${n}`, n]));
    const response = await customer.post("/v1/messages", { ...greeting, ...hostile, ...many });
    expect(response.status).toBe(200);
    const named = response.headers.get("x-ignored-params")?.split(", ") ?? [];
    expect(named).toHaveLength(32);
    expect(named[0]).toBe("plain_one");
    expect(response.headers.get("x-evil")).toBe(null);
    await running.service.settled();
  });
});
