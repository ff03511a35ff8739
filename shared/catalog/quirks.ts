import { z } from "zod";

const fieldName = z.string().regex(/^\w{1,64}$/);

/** Differences between an OpenAI-compatible server and OpenAI. docs/upstreams.md has the source of each setting. */
export const quirks = z.strictObject({
  /**
   * Fields of a chat request that the server documents, that OpenAI does not, and that cost nothing extra. Other fields
   * that OpenAI does not document are dropped: strict servers refuse them, and elsewhere callers could buy something
   * that has no price here. Dropped fields are listed in `x-ignored-params`.
   */
  extra_fields: z.array(fieldName).default([]),
  /** Documented hints that the server refuses. They are also dropped and listed. */
  refused_fields: z.array(fieldName).default([]),
  /** Sent with every chat request unless the caller sets them. */
  added_fields: z.record(fieldName, z.json()).default({}),
  /**
   * `request`: a stream reports its usage if `stream_options` asks for it. `always`: the server refuses that field and
   * always reports usage.
   */
  stream_usage: z.enum(["request", "always"]).default("request"),
  /**
   * The output cap of a call whose caller set none. `send`: the limit of the model and of its remaining context, for
   * servers with a small default. `omit`: no cap, for servers that count it against a limit of tokens per minute; the
   * model's `max_output_tokens` must then be no less than the server's limit, because that amount is held.
   */
  default_cap: z.enum(["send", "omit"]).default("send"),
  /** Chat calls with a larger output cap must be streamed. Their complete response is assembled from a stream. */
  whole_answer_cap: z.int().positive().optional(),
  /** The smallest `max_output_tokens` of the server's Responses API. Calls with a smaller cap are refused. */
  min_response_cap: z.int().positive().default(1),
  /** `false`: messages of the role `developer` are sent as `system`. */
  developer_role: z.boolean().default(true),
  /** `first`: only one system message is allowed, at the start. Later ones are joined to it. */
  system_messages: z.enum(["any", "first"]).default("any"),
  /** `basic`: messages contain only the role, the content and the fields that tool calls need. */
  message_fields: z.enum(["pass", "basic"]).default("pass"),
  /**
   * `drop`: the server refuses assistant messages without content and calls, and empty text next to calls. `text`: the
   * same, except that next to calls the server accepts empty text and refuses null.
   */
  empty_messages: z.enum(["pass", "drop", "text"]).default("pass"),
  /** `nine`: ids of tool calls are nine letters and digits. Others are replaced by a hash. */
  tool_call_ids: z.enum(["any", "nine"]).default("any"),
  /** `bridge`: a user message must not follow a tool message, so an assistant message is inserted between them. */
  user_after_tool: z.enum(["pass", "bridge"]).default("pass"),
  /** The only field of assistant messages in which the server accepts its own reasoning. */
  reasoning_field: z.enum(["none", "reasoning_content", "reasoning", "reasoning_details"]).default("none"),
  /** `space`: assistant messages with tool calls need reasoning, even if another model or the client omitted it. */
  missing_reasoning: z.enum(["pass", "space"]).default("pass"),
  /**
   * `thinking: {type: "disabled"}` turns thinking off. It is sent with an effort of `none`, and for requests that the
   * server refuses while it thinks: a `tool_choice` that forces a call, and a conversation with calls that lacks
   * reasoning.
   */
  thinking_switch: z.boolean().default(false),
  /** A dated version of Azure's API, whose paths name the deployment. Without it, paths are those of the v1 API. */
  api_version: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2}(-preview)?$/, "must be a version of Azure's API, such as '2024-10-21'")
    .optional(),
});

export type Quirks = z.infer<typeof quirks>;

/** The settings of OpenAI itself, and of every provider that is not OpenAI-compatible. */
export const noQuirks: Quirks = quirks.parse({});
