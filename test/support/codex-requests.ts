/**
 * Recorded requests of the Codex CLI 0.169.0 with its defaults and one MCP server: ids, texts and schemas are
 * shortened, and only one of several similar tools or items is included. https://github.com/openai/codex
 */

const message = (role: string, text: string) => ({
  type: "message",
  id: "msg_01a20420-3467-7d60-9485-892f7b498a0a",
  role,
  content: [{ type: "input_text", text }],
});

const parameters = { type: "object", properties: { cmd: { type: "string" } }, required: ["cmd"] };
const run = { type: "function", name: "exec_command", description: "Runs a command.", strict: false, parameters };

const patch = {
  type: "custom",
  name: "apply_patch",
  description: "The `apply_patch` tool can be used to edit files.",
  format: { type: "grammar", syntax: "lark", definition: "start: begin_patch hunk+ end_patch\n" },
};
const search = {
  type: "tool_search",
  execution: "client",
  description: "# Tool discovery",
  parameters: { type: "object", properties: { query: { type: "string" } }, required: ["query"] },
};
const webSearch = { type: "web_search", external_web_access: false, search_content_types: ["text", "image"] };

const order = { type: "object", properties: { number: { type: "integer" } }, required: ["number"] };
const lookUp = { type: "function", name: "lookup_order", description: "Looks up an order.", strict: false };
const orders = (more: object = {}) => ({
  type: "namespace",
  name: "mcp__orders",
  description: "Orders of the shop.",
  tools: [{ ...lookUp, parameters: order, ...more }],
});

const options = {
  stream: true,
  tool_choice: "auto",
  store: false,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "01a20420-339b-75b2-828c-8693c31ce023",
  client_metadata: { session_id: "01a20420-339b-75b2-828c-8693c31ce023", "x-codex-window-id": "01a20420:0" },
};

const thought = (id: string) => ({
  type: "reasoning",
  id,
  summary: [{ type: "summary_text", text: "Thinking." }],
  content: null,
  encrypted_content: "ENCRYPTED",
});

const begun = [
  message("developer", "You are Codex, a coding agent."),
  message("user", "<environment_context>"),
  message("user", "Say hello"),
];

const orderCall = {
  type: "function_call",
  status: "completed",
  id: "fc_2",
  name: "lookup_order",
  namespace: "mcp__orders",
  arguments: '{"number":7}',
  call_id: "call_2",
};
const orderResult = {
  type: "function_call_output",
  id: "fco_01a20420-34b8-7443-b4df-03802a3a858c",
  call_id: "call_2",
  output: [
    { type: "input_text", text: "Output:" },
    { type: "input_text", text: "Order 7 is shipped." },
  ],
};

/** A model that Codex does not know: the tools of every MCP server are a namespace. */
export const namespaced = {
  input: [...begun, thought("rs_2"), orderCall, orderResult],
  tools: [run, orders(), { type: "web_search", external_web_access: false }],
  parallel_tool_calls: true,
  reasoning: { summary: "auto" },
  ...options,
};

/** GPT-5.5: it searches for the tools of MCP servers, and edits files with a custom tool. */
export const searching = {
  input: [
    ...begun,
    thought("rs_1"),
    {
      type: "tool_search_call",
      id: "tsc_01a20420-348e-7180-8b1d-76547af7f818",
      call_id: "call_s1",
      status: "completed",
      execution: "client",
      arguments: { query: "orders", limit: 4 },
    },
    {
      type: "tool_search_output",
      id: "tso_01a20420-3494-77a1-ba76-24e65825e46f",
      call_id: "call_s1",
      status: "completed",
      execution: "client",
      tools: [orders({ defer_loading: true })],
    },
    thought("rs_2"),
    orderCall,
    orderResult,
    {
      type: "custom_tool_call",
      id: "ctc_01a20420-34cf-7311-8510-c1494ec22147",
      status: "completed",
      call_id: "call_p1",
      name: "apply_patch",
      input: "*** Begin Patch\n*** End Patch\n",
    },
    {
      type: "custom_tool_call_output",
      id: "ctco_01a20420-34d3-74d0-a532-451cf6a50b69",
      call_id: "call_p1",
      output: "patch rejected",
    },
  ],
  tools: [run, patch, search, webSearch],
  parallel_tool_calls: true,
  reasoning: { effort: "medium" },
  text: { verbosity: "low" },
  ...options,
};

/** GPT-6: all tools are in an item of the input. */
export const additional = {
  input: [
    {
      type: "additional_tools",
      id: "at_01a2041f-9067-7b33-a406-665524b33af7",
      role: "developer",
      tools: [
        { type: "namespace", name: "functions", description: "", tools: [{ ...patch, name: "exec" }, run] },
        { type: "namespace", name: "clock", description: "Time.", tools: [{ ...run, name: "sleep" }] },
      ],
    },
    ...begun,
  ],
  parallel_tool_calls: false,
  reasoning: { effort: "medium", context: "all_turns" },
  text: { verbosity: "low" },
  ...options,
};
