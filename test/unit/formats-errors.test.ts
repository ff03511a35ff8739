import { expect, test } from "vitest";
import { type ErrorCode, errorKinds, insufficientBalance, invalidValue, isProviderCode, ServiceError } from "#errors";
import { chatCodec, embeddingsCodec, geminiCodec, messagesCodec, responsesCodec } from "#formats";
import { messageTypes } from "../support/message-types.ts";

const gemini = geminiCodec("gemini-3.8-flash", true, true);
const codes = Object.keys(errorKinds) as ErrorCode[];
const late = new ServiceError({ code: "upstream_timeout", message: "late" });

test.each([
  ["chat", chatCodec],
  ["embeddings", embeddingsCodec],
  ["responses", responsesCodec],
])("errors of %s have the common shape", (_, codec) => {
  const shown = (error: ServiceError): unknown => JSON.parse(codec.error(error, "req_1"));
  expect(shown(late)).toEqual({
    error: { message: "late", type: "server_error", code: "upstream_timeout", param: null },
    request_id: "req_1",
  });
  const unknown = new ServiceError({ code: "model_not_found", message: "none", param: "model" });
  expect(shown(unknown)).toEqual({
    error: { message: "none", type: "not_found_error", code: "model_not_found", param: "model" },
    request_id: "req_1",
  });
  expect(shown(insufficientBalance("empty"))).toMatchObject({
    error: { type: "insufficient_quota", code: "insufficient_balance" },
  });
  expect(codec.ping).toBe(": ping\n\n");
});

test("an error in a stream is one event", () => {
  const chat = chatCodec.error(late, "req_1");
  expect(chatCodec.streamError(late, "req_1", true)).toBe(`data: ${chat}\n\n`);
  const ofGemini = { error: { code: 504, message: "late", status: "DEADLINE_EXCEEDED" } };
  expect(gemini.streamError(late, "req_1", true)).toBe(`data: ${JSON.stringify(ofGemini)}\n\n`);
  expect(gemini.ping).toBe("\n\n");
  expect(gemini.streamType).toBeUndefined();
  const [line, data] = responsesCodec.streamError(late, "req_1", true).split("\n");
  expect(line).toBe("event: error");
  expect(JSON.parse((data as string).slice("data: ".length))).toEqual({
    type: "error",
    code: "upstream_timeout",
    message: "late",
    param: null,
    sequence_number: 2_147_483_647,
  });
});

test("an error does not repeat the refused value", () => {
  const body = { model: "m", messages: [{ role: "a secret", content: "x" }] };
  expect(() => chatCodec.parse(body, 100)).toThrow(
    expect.objectContaining({ message: expect.not.stringContaining("a secret") as string }),
  );
});

test("a refused thread has the details that make clients send the whole conversation", () => {
  const error = invalidValue("thread", "Not here.");
  expect(JSON.parse(messagesCodec.error(error, "req_1"))).toEqual({
    type: "error",
    error: {
      type: "invalid_request_error",
      message: "Not here.",
      details: { error_code: "thread_unsupported_request", unsupported: ["thread"] },
    },
    request_id: "req_1",
  });
});

test("errors of Messages have the provider's types, whole and in a stream", () => {
  for (const code of codes) {
    const error = new ServiceError({ code, message: "Why." });
    const body = { type: "error", error: { type: messageTypes[error.status], message: "Why." }, request_id: "req_1" };
    expect(messagesCodec.error(error, "req_1")).toBe(JSON.stringify(body));
    expect(messagesCodec.streamError(error, "req_1", true)).toBe(`event: error\ndata: ${JSON.stringify(body)}\n\n`);
  }
  expect(messagesCodec.ping).toBe('event: ping\ndata: {"type": "ping"}\n\n');
});

test("errors of Gemini have the provider's status names", () => {
  const status = (code: ErrorCode) => {
    const body = gemini.error(new ServiceError({ code, message: "No." }), "req_1");
    return (JSON.parse(body) as { error: { status: string } }).error.status;
  };
  const refusals = codes.filter(isProviderCode).map((code) => [code, "INVALID_ARGUMENT"]);
  expect(Object.fromEntries(codes.map((code) => [code, status(code)]))).toEqual({
    ...Object.fromEntries(refusals),
    invalid_value: "INVALID_ARGUMENT",
    invalid_webhook_url: "INVALID_ARGUMENT",
    provider_key_invalid: "INVALID_ARGUMENT",
    byok_authentication_failed: "FAILED_PRECONDITION",
    byok_quota_exceeded: "FAILED_PRECONDITION",
    byok_rate_limited: "RESOURCE_EXHAUSTED",
    model_not_supported: "INVALID_ARGUMENT",
    invalid_api_key: "UNAUTHENTICATED",
    key_expired: "UNAUTHENTICATED",
    insufficient_balance: "FAILED_PRECONDITION",
    budget_exceeded: "FAILED_PRECONDITION",
    account_frozen: "PERMISSION_DENIED",
    insufficient_scope: "PERMISSION_DENIED",
    model_not_allowed: "PERMISSION_DENIED",
    cross_site_request: "PERMISSION_DENIED",
    model_not_found: "NOT_FOUND",
    unknown_url: "NOT_FOUND",
    not_found: "NOT_FOUND",
    upload_not_found: "NOT_FOUND",
    method_not_allowed: "NOT_FOUND",
    upgrade_required: "INVALID_ARGUMENT",
    conflict: "ABORTED",
    upload_expired: "NOT_FOUND",
    upload_deleted: "NOT_FOUND",
    job_expired: "NOT_FOUND",
    file_expired: "NOT_FOUND",
    file_not_found: "NOT_FOUND",
    batch_file_expired: "NOT_FOUND",
    file_quota_exceeded: "INVALID_ARGUMENT",
    length_required: "INVALID_ARGUMENT",
    request_too_large: "INVALID_ARGUMENT",
    unsupported_media_type: "INVALID_ARGUMENT",
    expectation_failed: "INVALID_ARGUMENT",
    headers_too_large: "INVALID_ARGUMENT",
    rate_limit_exceeded: "RESOURCE_EXHAUSTED",
    request_timeout: "DEADLINE_EXCEEDED",
    stream_not_resumable: "ABORTED",
    internal_error: "INTERNAL",
    not_configured: "INTERNAL",
    upstream_error: "INTERNAL",
    no_capacity: "UNAVAILABLE",
    generation_in_progress: "UNAVAILABLE",
    upstream_timeout: "DEADLINE_EXCEEDED",
  });
});
