import { mockError } from "./mock-openai.ts";
import type { MockRequest, Usual } from "./mock-provider.ts";

/**
 * The refusals of the catalog's OpenAI-compatible servers, each in its own words and shape, by its name in the catalog.
 * docs/upstreams.md has the public source of each rule. Nothing here is stricter than those reports.
 */
export const strictServers: Readonly<Record<string, (request: MockRequest) => Usual | undefined>> = {
  openai: ({ path, body }) => {
    if (path === "/v1/responses" && Number(body["max_output_tokens"] ?? 16) < 16)
      return mockError(400, "Invalid 'max_output_tokens': integer below minimum value.", {
        code: "integer_below_min_value",
        param: "max_output_tokens",
      });
    if (path !== "/v1/chat/completions" || body["metadata"] === undefined || body["store"] === true) return undefined;
    return mockError(400, "The 'metadata' parameter is only allowed when 'store' is enabled.", { param: "metadata" });
  },

  deepseek({ body }) {
    const messages = messagesOf(body);
    if (hasRole(messages, "developer"))
      return mockError(400, "unknown variant `developer`, expected one of `system`, `user`, `assistant`, `tool`");
    if (body["thinking"] !== undefined) return undefined;
    if (forcesTool(body)) return mockError(400, "Thinking mode does not support this tool_choice");
    const assistants = messages.filter(isAssistant);
    if (assistants.some(callsTools) && assistants.some(({ reasoning_content }) => !reasoning_content))
      return mockError(400, "The `reasoning_content` in the thinking mode must be passed back to the API.");
    return undefined;
  },

  mistral({ body }) {
    const field = Object.keys(body).find((each) => !mistralFields.has(each));
    if (field) return pydantic(["body", field]);
    const messages = messagesOf(body);
    const extra = findMessageField(messages, mistralMessageFields);
    if (extra) return pydantic(["body", "messages", ...extra]);
    const ids = messages.flatMap(({ tool_call_id, tool_calls }) => [
      ...(typeof tool_call_id === "string" ? [tool_call_id] : []),
      ...(tool_calls ?? []).map((call) => (call as { id: string }).id),
    ]);
    const id = ids.find((each) => !/^[a-zA-Z0-9]{9}$/.test(each));
    if (id) return mistralError(`Tool call id was ${id} but must be a-z, A-Z, 0-9, with a length of 9.`, "3280");
    if (messages.some(({ role }, m) => role === "user" && messages[m - 1]?.role === "tool"))
      return mistralError("Unexpected role 'user' after role 'tool'", "3230");
    const tokens = Math.ceil(JSON.stringify(messages).length / 4);
    const cap = Number(body["max_tokens"] ?? 0);
    if (tokens + cap <= 128_000) return undefined;
    return mistralError(
      `Prompt contains ${tokens} tokens, too large for model with 128000 maximum context length`,
      "3051",
    );
  },

  moonshot({ body }) {
    for (const field of ["temperature", "top_p", "presence_penalty", "frequency_penalty"])
      if (body[field] !== undefined) return mockError(400, `invalid ${field}: only 1 is allowed for this model`);
    const messages = messagesOf(body);
    if (hasRole(messages, "developer")) return mockError(400, "invalid role: ROLE_UNSPECIFIED");
    const empty = messages.findIndex((each) => isAssistant(each) && !each.content && !callsTools(each));
    if (empty >= 0) return mockError(400, `the message at position ${empty} with role 'assistant' must not be empty`);
    const lacking = messages.findIndex((each) => callsTools(each) && !each["reasoning_content"]);
    if (lacking < 0) return undefined;
    return mockError(
      400,
      `thinking is enabled but reasoning_content is missing in assistant message at index ${lacking}`,
    );
  },

  zai: ({ body }) =>
    hasRole(messagesOf(body), "developer")
      ? { status: 400, body: { error: { code: "1214", message: "Incorrect role information" } } }
      : undefined,

  minimax({ body }) {
    const messages = messagesOf(body);
    const refused = (message: string): Usual => ({
      status: 400,
      body: { type: "error", error: { type: "bad_request_error", message: `${message} (2013)`, http_code: "400" } },
    });
    if (body["reasoning_split"] !== true) return refused("this stand-in shows no thinking in its content");
    if (messages.slice(1).some(({ role }) => role === "system" || role === "developer"))
      return refused("invalid params, invalid message role: system");
    const tools = (body["tools"] ?? []) as { function: { parameters?: unknown } }[];
    if (tools.some(({ function: { parameters } }) => parameters === undefined))
      return refused("invalid params, function parameters is empty");
    const foreign = messages.flatMap(({ reasoning_details }) => (reasoning_details ?? []) as { signature?: unknown }[]);
    return foreign.some(({ signature }) => signature !== undefined) ? refused("invalid params") : undefined;
  },

  together: ({ body }) => {
    const messages = messagesOf(body);
    return hasRole(messages, "developer") ? mockError(422, "Input validation error: unknown role") : undefined;
  },

  fireworks({ body }) {
    const field = ["store", "verbosity", "safety_identifier", "prompt_cache_retention"].find((each) => each in body);
    if (field) return mockError(400, `Extra inputs are not permitted, field: '${field}'`);
    if (body["stream"] !== true && Number(body["max_tokens"] ?? 0) > 4096)
      return mockError(400, "Requests with max_tokens > 4096 must have stream=true");
    const messages = messagesOf(body);
    if (hasRole(messages, "developer")) return mockError(400, "Input should be 'system', 'user' or 'assistant'");
    if (messages.slice(1).some(({ role }) => role === "system"))
      return mockError(400, "System message must be at the beginning.");
    const extra = findMessageField(messages, new Set([...openMessageFields, "reasoning_content"]));
    return extra && mockError(400, `Extra inputs are not permitted, field: 'messages.${extra.join(".")}'`);
  },

  groq({ body }) {
    const field = ["store", "metadata", "verbosity", "safety_identifier"].find((each) => each in body);
    if (field) return mockError(400, `property '${field}' is unsupported`);
    const messages = messagesOf(body);
    const extra = findMessageField(messages, new Set([...openMessageFields, "name", "reasoning"]));
    if (extra) return mockError(400, `'messages.${extra.join(".")}' : property is unsupported`);
    const cap = Number(body["max_completion_tokens"] ?? body["max_tokens"] ?? 0);
    if (cap <= 8000) return undefined;
    return mockError(413, `Request too large for model: Limit 8000, Requested ${cap}`, {
      type: "tokens",
      code: "rate_limit_exceeded",
    });
  },

  novita: () => undefined,

  xai({ body }) {
    const field = ["presence_penalty", "frequency_penalty", "stop"].find((each) => each in body);
    if (field) return xaiError(`Argument not supported on this model: ${field}`);
    if (body["reasoning_effort"] === "none")
      return xaiError("This model does not support the reasoning effort 'none'.");
    const messages = messagesOf(body);
    if (messages.some(({ content }) => content == null || (Array.isArray(content) && content.length === 0)))
      return xaiError("Invalid request content: Each message must have at least one content element.");
    if (messages.some((each) => each.content === "" && !callsTools(each)))
      return xaiError("An empty message was provided. Every message needs at least one non-empty content element.");
    return undefined;
  },
};

interface Message {
  readonly role?: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly unknown[] | null;
  readonly tool_call_id?: unknown;
  readonly [field: string]: unknown;
}

const messagesOf = (body: MockRequest["body"]) => (body["messages"] ?? []) as readonly Message[];
const hasRole = (messages: readonly Message[], role: string) => messages.some((each) => each.role === role);
const isAssistant = ({ role }: Message) => role === "assistant";
const callsTools = ({ tool_calls }: Message) => (tool_calls?.length ?? 0) > 0;

function forcesTool({ tool_choice }: MockRequest["body"]): boolean {
  return tool_choice === "required" || typeof tool_choice === "object";
}

const openMessageFields: readonly string[] = ["role", "content", "tool_calls", "tool_call_id"];

/** The index and name of the first field of a message that is not among these. */
function findMessageField(messages: readonly Message[], fields: ReadonlySet<string>) {
  for (const [index, message] of messages.entries()) {
    const field = Object.keys(message).find((each) => !fields.has(each));
    if (field) return [index, field] as const;
  }
  return undefined;
}

const mistralMessageFields = new Set([...openMessageFields, "prefix"]);
const mistralFields = new Set(
  (
    "model messages temperature top_p max_tokens stream stop random_seed metadata response_format tools tool_choice " +
    "presence_penalty frequency_penalty n prediction parallel_tool_calls prompt_mode reasoning_effort safe_prompt " +
    "guardrails prompt_cache_key"
  ).split(" "),
);

const xaiError = (error: string): Usual => ({
  status: 400,
  body: { code: "Client specified an invalid argument", error },
});

/** The response to an unknown field of servers that validate with pydantic. */
const pydantic = (loc: readonly unknown[]): Usual => ({
  status: 422,
  body: {
    object: "error",
    message: { detail: [{ type: "extra_forbidden", loc, msg: "Extra inputs are not permitted", input: null }] },
    type: "invalid_request_error",
    param: null,
    code: null,
  },
});

const mistralError = (message: string, code: string): Usual => ({
  status: 400,
  body: { object: "error", message, type: "invalid_request_message_order", param: null, code },
});
