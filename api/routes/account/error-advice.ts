import type { ErrorCode } from "#errors";

const correct = "Correct the field that the message names. Repeating the request unchanged cannot succeed.";
const rephrase = "Change the prompt or the input. Another model may accept it.";
const otherImage = "Send the image as PNG, JPEG or WebP of a common size, and check that its address can be fetched.";
const uploadAgain = "Upload the file again, and use the new id. Files are kept for 24 hours.";
const askOperator = "Ask the operator of the service.";
const repeat = "Repeat the call after the time in `Retry-After`; official clients do so by themselves.";
const useOther = "Check the id. It may belong to another account, or may have been deleted.";
const ownKey = "Check the key on the page of provider keys, or allow the operator's keys with `provider.byok`.";

/** What to do about an error, for docs/errors.md and for requests that got one. */
export const errorAdvice: Readonly<Record<ErrorCode, string>> = {
  invalid_value: correct,
  invalid_webhook_url: "Use an https address that is reachable from the internet.",
  provider_key_invalid: "Copy the credential from the provider again, and check its permissions there.",
  file_quota_exceeded: "Delete files that are no longer needed, or wait until they expire.",
  model_not_supported: "Choose a model that has this endpoint or feature: `GET /v1/models` lists what each has.",
  context_length_exceeded: "Shorten the conversation, lower the output limit, or choose a model with a longer context.",
  string_above_max_length: "Shorten the text that the message names, or send it in parts.",
  content_policy_violation: rephrase,
  content_filter: rephrase,
  invalid_prompt: rephrase,
  invalid_image: otherImage,
  invalid_image_format: otherImage,
  invalid_image_url: otherImage,
  invalid_base64_image: "Send the image as a data URL: `data:image/png;base64,...`.",
  image_too_large: "Scale the image down.",
  image_too_small: "Send a larger image.",
  image_content_policy_violation: rephrase,
  unsupported_parameter: "Leave the parameter out, or choose a model that supports it.",
  unsupported_value: "Use another value of the parameter, or choose a model that supports it.",
  invalid_function_parameters: "Correct the tool's JSON Schema.",
  invalid_json_schema: "Correct the JSON Schema of the response; strict ones need `additionalProperties: false`.",
  invalid_encrypted_content: "Send reasoning back only to the model that made it, and unchanged.",
  tool_use_failed: "Repeat the call, simplify the tools, or choose another model.",
  json_validate_failed: "Repeat the call, simplify the schema, or choose another model.",
  moderation_blocked: rephrase,
  invalid_api_key: "Send a valid key as `Authorization: Bearer <key>`.",
  key_expired: "Create a new key, or change the time at which this one expires.",
  insufficient_balance:
    "Top up the balance, or lower the output limit: the most that a call can cost must be available.",
  budget_exceeded: "Raise the budget of the key, or wait until it is reset.",
  account_frozen: askOperator,
  insufficient_scope: "Use a key with the scope that the message names.",
  model_not_allowed: "Use a model that the key may call, or change the models of the key.",
  cross_site_request: "Use the dashboard's own page.",
  model_not_found: "Check the id of the model: `GET /v1/models` lists those that can be called.",
  unknown_url: "Check the path; the API reference lists all of them.",
  not_found: useOther,
  upload_not_found: useOther,
  file_not_found: useOther,
  method_not_allowed: "Use the method that the API reference names.",
  request_timeout: "Check the connection of the caller, and repeat the request.",
  conflict: "Use a new Idempotency-Key for a different request.",
  stream_not_resumable: "Poll the response instead of its stream.",
  upload_expired: uploadAgain,
  upload_deleted: uploadAgain,
  job_expired: "Repeat the call. Results are kept for 24 hours: fetch them earlier, or use a webhook.",
  file_expired: "Repeat the call. Files are kept for 24 hours: download what you want to keep.",
  batch_file_expired: "Upload the file again, and use the new id.",
  length_required: "Send the length of the body in `Content-Length`.",
  request_too_large: "Send large files as uploads, and name them by their id; send less text or fewer items.",
  unsupported_media_type: "Send the body as JSON or a form, and the file in one of the types that the message names.",
  expectation_failed: "Leave the header `Expect` out.",
  byok_authentication_failed: ownKey,
  byok_quota_exceeded: "Add credit at the provider, or allow the operator's keys with `provider.byok`.",
  upgrade_required: "Send a POST request; answers stream as server-sent events.",
  rate_limit_exceeded:
    "Send fewer requests at once, or repeat the call after the time in `Retry-After`. The limits of a key can be changed.",
  byok_rate_limited: "Repeat the call later, or raise the limits at the provider.",
  headers_too_large: "Shorten the headers and the URL.",
  internal_error: `Repeat the call. If it fails again, send the request id to the operator of the service.`,
  not_configured: askOperator,
  upstream_error:
    "Repeat the call: every provider of the model failed. A list of `models` lets another model answer in its place.",
  no_capacity: repeat,
  generation_in_progress: "Repeat the request with the same Idempotency-Key to wait for the answer.",
  upstream_timeout: "Stream the answer, ask for less output, or make the call a job with `Prefer: respond-async`.",
};
