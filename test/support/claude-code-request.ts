/**
 * The body of Claude Code 2.1.197 at its third turn with tool search and one-hour caching, recorded; long texts and
 * most tools are omitted.
 */
export const claudeCodeRequest = (model: string) => ({
  model,
  messages: [
    {
      role: "user",
      content: [
        {
          type: "text",
          text: "<system-reminder>\nThe following deferred tools are now available.\n</system-reminder>",
        },
        { type: "text", text: "Where is order 7?" },
      ],
    },
    { role: "system", content: "Available agent types for the Agent tool: claude." },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "c2lnbmF0dXJl" },
        { type: "tool_use", id: "toolu_2", name: "ToolSearch", input: { query: "select:mcp__orders__lookup_order" } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "toolu_2",
          content: [{ type: "tool_reference", tool_name: "mcp__orders__lookup_order" }],
        },
        { type: "text", text: "Tool loaded.", cache_control: { type: "ephemeral", ttl: "1h" } },
      ],
    },
  ],
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.197.1c0; cc_entrypoint=sdk-cli;" },
    {
      type: "text",
      text: "You are a Claude agent, built on Anthropic's Claude Agent SDK.",
      cache_control: { type: "ephemeral", ttl: "1h" },
    },
    {
      type: "text",
      text: "You are an interactive agent that helps users with software engineering tasks.",
      cache_control: { type: "ephemeral", ttl: "1h", scope: "global" },
    },
  ],
  tools: [
    { name: "ToolSearch", description: "Loads tools.", input_schema: { type: "object", properties: {} } },
    {
      name: "mcp__orders__lookup_order",
      description: "Looks up an order by its number.",
      input_schema: { type: "object", properties: { number: { type: "integer" } }, additionalProperties: false },
      defer_loading: true,
      eager_input_streaming: true,
    },
  ],
  metadata: { user_id: '{"device_id":"e28ad568","account_uuid":"","session_id":"31d5e4a1"}' },
  max_tokens: 8_000,
  thinking: { type: "adaptive" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  stream: true,
});

export const claudeCodeHeaders = {
  "anthropic-version": "2023-06-01",
  "anthropic-beta":
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,prompt-caching-scope-2026-01-05," +
    "advanced-tool-use-2025-11-20,effort-2025-11-24,extended-cache-ttl-2025-04-11",
};
