import { z } from "zod";

const fieldName = z.string().regex(/^\w{1,64}$/);

/** How an OpenAI-compatible server differs from OpenAI. docs/upstreams.md has the source of each setting in the catalog. */
export const quirks = z.strictObject({
  /**
   * Fields of a chat request that the server documents, OpenAI does not, and that cost nothing extra. Any others that OpenAI
   * does not document are dropped: strict servers refuse them, and elsewhere one could buy something that has no price here.
   * Dropped fields are named in `x-ignored-params`.
   */
  extra_fields: z.array(fieldName).default([]),
  /** Documented hints that the server refuses. They are dropped and named, too. */
  refused_fields: z.array(fieldName).default([]),
  /** Sent with every chat request, unless the caller sets them. */
  added_fields: z.record(fieldName, z.json()).default({}),
  /** `request`: a stream reports its usage if `stream_options` asks for it. `always`: that field is refused. */
  stream_usage: z.enum(["request", "always"]).default("request"),
  /**
   * The output cap of a call whose caller set none. `send`: what the model and the rest of its context allow, for servers
   * whose own default is small. `omit`: none, for servers that count it against a limit of tokens per minute; the model's
   * `max_output_tokens` must then be no less than the server's, because that is what is held.
   */
  default_cap: z.enum(["send", "omit"]).default("send"),
  /** Chat calls with a larger output cap must be streamed. Their whole answer is put together from a stream. */
  whole_answer_cap: z.int().positive().optional(),
  /** The smallest `max_output_tokens` of its Responses interface. Calls with a smaller cap are refused. */
  min_response_cap: z.int().positive().default(1),
  /** `false`: messages of the role `developer` are sent as `system`. */
  developer_role: z.boolean().default(true),
  /** `first`: only one system message, at the start. Later ones are joined to it. */
  system_messages: z.enum(["any", "first"]).default("any"),
  /** `basic`: messages with nothing but role, content, and what calls of tools need. */
  message_fields: z.enum(["pass", "basic"]).default("pass"),
  /**
   * `drop`: assistant messages without content and calls are refused, and so is empty text beside calls. `text`: the same, but
   * beside calls empty text is what the server takes, and null is refused.
   */
  empty_messages: z.enum(["pass", "drop", "text"]).default("pass"),
  /** `nine`: ids of tool calls are nine letters and digits. Others are replaced by a hash. */
  tool_call_ids: z.enum(["any", "nine"]).default("any"),
  /** `bridge`: a user message may not follow a tool's; an assistant message is put between them. */
  user_after_tool: z.enum(["pass", "bridge"]).default("pass"),
  /** The field of assistant messages in which the server takes its own reasoning back; other fields are not sent. */
  reasoning_field: z.enum(["none", "reasoning_content", "reasoning", "reasoning_details"]).default("none"),
  /** `space`: assistant messages with tool calls need a reasoning, also if another model wrote them or the client dropped it. */
  missing_reasoning: z.enum(["pass", "space"]).default("pass"),
  /**
   * `thinking: {type: "disabled"}` turns thinking off. It is sent with an effort of `none`, and where the server refuses the
   * request while it thinks: a `tool_choice` that forces a call, a conversation with calls that lacks reasoning.
   */
  thinking_switch: z.boolean().default(false),
});

export type Quirks = z.infer<typeof quirks>;

/** Those of OpenAI itself, and of every provider that is not OpenAI-compatible. */
export const noQuirks: Quirks = quirks.parse({});
