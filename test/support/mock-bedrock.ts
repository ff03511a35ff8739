import { type Answer as AnthropicAnswer, anthropicAnswer } from "./mock-anthropic.ts";
import { type MessageScript, messageEvents, messageOf } from "./mock-anthropic-message.ts";
import { type AccessKey, verifySignature } from "./mock-aws-signature.ts";
import { converseAnswer, converseRefusal } from "./mock-converse.ts";
import { chunkFrame, eventFrame } from "./mock-event-stream.ts";
import { textsOf, wordsOf } from "./mock-model.ts";
import { openaiAnswer } from "./mock-openai.ts";
import {
  type MockOptions,
  type MockProvider,
  type MockRequest,
  type ProviderAnswer,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";

/**
 * A mock of Amazon Bedrock in one region: `bedrock-runtime` (InvokeModel for Claude, Converse for others, OpenAI's routes
 * below `/openai/v1`, CountTokens), and `bedrock-mantle` below that path (OpenAI's and Anthropic's routes). It verifies
 * signatures and API keys, knows its models by the ids of its region, and refuses what AWS refuses, with its errors. Streams
 * are scripted by `mockFrames`.
 */
export type MockBedrock = MockProvider<Answer>;

export interface Answer extends ProviderAnswer, MessageScript {
  readonly inputTokens?: unknown;
}

export const mockApiKey = "bedrock-api-key-of-the-mock";
export const mockAccessKey = { access_key_id: "AKIA0000000000000001", secret_access_key: "mock/Secret+Key0123456789" };
export const mockSession = {
  access_key_id: "ASIA0000000000000002",
  secret_access_key: "mock/Session+Secret0123456789",
  session_token: "mockSessionToken//////////",
};

const accessKeys: ReadonlyMap<string, AccessKey> = new Map([
  [mockAccessKey.access_key_id, { secret: mockAccessKey.secret_access_key }],
  [mockSession.access_key_id, { secret: mockSession.secret_access_key, sessionToken: mockSession.session_token }],
]);

interface Place {
  readonly region: string;
  readonly prefix: string;
  /** Unix milliseconds. */
  readonly now: () => number;
}

const requestId = { "x-amzn-requestid": "11111111-2222-3333-4444-555555555555" };
const eventStream = { ...requestId, "content-type": "application/vnd.amazon.eventstream" };

/** A refusal in AWS's shape. */
export const mockAwsError = (status: number, type: string, message: string): Answer => ({
  status,
  headers: { ...requestId, "x-amzn-errortype": `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/` },
  body: { message },
});

/** A stream of these frames. */
export const mockFrames = (events: readonly Buffer[], more: Answer = {}): Answer => ({
  ...more,
  events,
  headers: { ...eventStream, ...more.headers },
});

export const startMockBedrock = (
  { region = "us-east-1", prefix = "us", now = Date.now }: Partial<Place> = {},
  options?: MockOptions,
): Promise<MockBedrock> =>
  startMockProvider<Answer>(
    {
      usual: (request, scripted) => answerOf(request, scripted, { region, prefix, now }),
      frame: (event) => `data: ${JSON.stringify(event)}\n\n`,
      lastFrame: ({ path }) => (/chat\/completions/.test(path) ? "data: [DONE]\n\n" : ""),
    },
    options,
  );

function answerOf(request: MockRequest, scripted: Answer, place: Place): Usual {
  const isMantle = request.path.startsWith("/bedrock-mantle/");
  const service = isMantle ? "bedrock-mantle" : "bedrock";
  const refused = authRefusal(request, service, place);
  if (refused) return refused;
  return isMantle ? mantleAnswer(request, scripted) : runtimeAnswer(request, scripted, place);
}

function authRefusal(request: MockRequest, service: string, { region, now }: Place): Answer | undefined {
  const given = request.headers.authorization;
  if (given === undefined)
    return mockAwsError(403, "MissingAuthenticationTokenException", "Missing Authentication Token");
  if (given === `Bearer ${mockApiKey}`) return undefined;
  if (given.startsWith("Bearer "))
    return mockAwsError(403, "AccessDeniedException", "Authentication failed: Please make sure your API Key is valid.");
  const verdict = verifySignature(request, accessKeys, { region, service, now: now() });
  return verdict && mockAwsError(403, verdict.type, verdict.message);
}

const runtimePath = /^\/model\/([^/]+)\/(invoke|invoke-with-response-stream|converse|converse-stream|count-tokens)$/;
const validation = (message: string) => mockAwsError(400, "ValidationException", message);

function runtimeAnswer(request: MockRequest, scripted: Answer, place: Place): Usual {
  const { method, path, headers } = request;
  if (path.startsWith("/openai/v1/")) return openaiRoute(request, scripted, "/openai/v1", place);
  const [, encoded = "", operation = ""] = runtimePath.exec(path) ?? [];
  const model = decodeURIComponent(encoded);
  if (method !== "POST" || operation === "" || encoded !== encodeURIComponent(model))
    return mockAwsError(404, "UnknownOperationException", "");
  if (!String(headers["content-type"]).startsWith("application/json"))
    return validation("The content type is not supported.");
  if (operation === "count-tokens") return countAnswer(model, request, scripted);
  const unknown = modelRefusal(model, place);
  if (unknown) return unknown;
  return operation.startsWith("invoke")
    ? invokeAnswer(request, scripted, operation === "invoke")
    : converseRoute(model, request, scripted, operation === "converse");
}

const claude = "anthropic\\.claude-[a-z0-9:-]+";
const profile = /^arn:aws:bedrock:[a-z0-9-]+:\d{12}:application-inference-profile\/[a-z0-9]+$/;
/** Models that can be called in one region, by their own ids. */
const inRegion = /^(mistral\.|amazon\.nova-|openai\.gpt-oss-)/;

function modelRefusal(model: string, { prefix }: Place): Answer | undefined {
  if (inRegion.test(model) || profile.test(model)) return undefined;
  if (new RegExp(`^(${prefix}|global)\\.(${claude}|meta\\.llama4-|openai\\.gpt-)`).test(model)) return undefined;
  return validation(
    new RegExp(`^(${claude}|meta\\.llama4-)`).test(model)
      ? `Invocation of model ID ${model} with on-demand throughput isn’t supported. Retry your request with the ID or ARN ` +
          "of an inference profile that contains this model."
      : "The provided model identifier is invalid.",
  );
}

type Fields = Readonly<Record<string, unknown>>;
const list = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value : []);
const object = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});

const invokeFields = new Set(
  (
    "anthropic_version anthropic_beta max_tokens messages system temperature top_p top_k stop_sequences tools tool_choice " +
    "thinking output_config metadata context_management cache_control"
  ).split(" "),
);
const betas: readonly unknown[] = ["fine-grained-tool-streaming-2025-05-14", "context-1m-2025-08-07"];

/** https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages-request-response.html */
function invokeRefusal(body: Fields): string | undefined {
  const malformed = (what: string) => `Malformed input request: ${what}, please reformat your input and try again.`;
  if (body["anthropic_version"] !== "bedrock-2023-05-31")
    return malformed("#: required key [anthropic_version] not found");
  const extra = Object.keys(body).find((field) => !invokeFields.has(field));
  if (extra) return malformed(`#: extraneous key [${extra}] is not permitted`);
  if (!Number.isInteger(body["max_tokens"])) return malformed("#: required key [max_tokens] not found");
  if (body["anthropic_beta"] !== undefined && !Array.isArray(body["anthropic_beta"]))
    return malformed("#/anthropic_beta");
  if ((body["anthropic_beta"] as unknown[] | undefined)?.some((beta) => !betas.includes(beta)))
    return "invalid beta flag";
  const choice = Object.keys(object(body["tool_choice"])).find((field) => field !== "type" && field !== "name");
  if (choice) return malformed(`#/tool_choice: extraneous key [${choice}] is not permitted`);
  if (list(body["tools"]).some((tool) => "eager_input_streaming" in tool))
    return "tools.0.custom.eager_input_streaming: Extra inputs are not permitted";
  const blocks = list(body["messages"]).flatMap(({ content }) => list(content));
  const inner = blocks.flatMap(({ content }) => list(content));
  const isLink = [...blocks, ...inner].some(({ source }) => object(source)["type"] === "url");
  return isLink ? "messages.0.content.0.image.source: URL sources are not supported" : undefined;
}

const metrics = { inputTokenCount: 3, outputTokenCount: 5, invocationLatency: 100, firstByteLatency: 10 };

function invokeAnswer({ body }: MockRequest, scripted: Answer, isWhole: boolean): Usual {
  const refusal = invokeRefusal(body);
  if (refusal) return validation(refusal);
  const message = messageOf({ ...body, model: "claude-mock" }, scripted);
  if (isWhole) return { body: message, headers: requestId };
  const events = messageEvents(message).map((event) =>
    chunkFrame(event["type"] === "message_stop" ? { ...event, "amazon-bedrock-invocationMetrics": metrics } : event),
  );
  return { events, headers: eventStream };
}

function converseRoute(model: string, { body }: MockRequest, scripted: Answer, isWhole: boolean): Usual {
  const refusal = converseRefusal(model, body);
  if (refusal) return validation(refusal);
  const { whole, events } = converseAnswer(model, body, scripted);
  if (isWhole) return { body: whole, headers: requestId };
  return { events: events.map(([type, event]) => eventFrame(type, { ...event, p: "abcd" })), headers: eventStream };
}

/** Only foundation models count, and only those of Anthropic. */
function countAnswer(model: string, { body }: MockRequest, scripted: Answer): Usual {
  if (!new RegExp(`^${claude}$`).test(model)) return validation("The provided model doesn't support counting tokens.");
  const { body: encoded } = object(object(body["input"])["invokeModel"]);
  const counted = JSON.parse(Buffer.from(String(encoded), "base64").toString()) as Fields;
  const refusal = invokeRefusal(counted);
  if (refusal) return validation(refusal);
  return {
    body: { inputTokens: scripted.inputTokens ?? wordsOf(textsOf(counted).join(" ")).length },
    headers: requestId,
  };
}

function openaiRoute(request: MockRequest, scripted: Answer, prefix: string, place?: Place): Usual {
  const { path, body } = request;
  const model = String(body["model"]);
  const error = (message: string) => ({ status: 400, body: { error: { message, type: "invalid_request_error" } } });
  if (!/openai\.gpt-/.test(model) && place) return error(`The model '${model}' isn't supported on this route`);
  if (place && modelRefusal(model, place)) return error("The provided model identifier is invalid.");
  return openaiAnswer({ ...authorized(request), path: path.replace(prefix, "/v1") }, scripted as object);
}

/** The vendors' own mocks know only bearer tokens. */
const authorized = (request: MockRequest): MockRequest => ({
  ...request,
  headers: { ...request.headers, authorization: "Bearer mock" },
});

function mantleAnswer(request: MockRequest, scripted: Answer): Usual {
  const path = request.path.replace("/bedrock-mantle", "");
  const model = String(request.body["model"]);
  if (request.method === "GET" && path === "/v1/models") return { body: { object: "list", data: [] } };
  if (request.method === "POST" && /^(us|eu|global)\./.test(model))
    return {
      status: 404,
      body: { error: { message: `The model '${model}' does not exist`, type: "not_found_error" } },
    };
  if (path.startsWith("/anthropic/v1/"))
    return anthropicAnswer(
      { ...authorized(request), path: path.replace("/anthropic", "") },
      scripted as AnthropicAnswer,
    );
  const [, prefix = ""] = /^((?:\/openai)?\/v1)\//.exec(path) ?? [];
  if (prefix === "" || (prefix === "/openai/v1") !== /^openai\.gpt-\d/.test(model))
    return { status: 404, body: { error: { message: `The model '${model}' isn't supported on this route` } } };
  return openaiRoute({ ...request, path }, scripted, prefix);
}
