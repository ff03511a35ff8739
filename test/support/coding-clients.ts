/**
 * Recorded and shortened requests of coding clients: prompts, descriptions and the list of tools are cut, but every
 * field is included. Claude Code 2.1.197 (`POST /v1/messages?beta=true`) and Codex 0.169.0 (`POST /v1/responses`), each
 * in the turn after a tool ran.
 */

export const claudeCodeHeaders = {
  accept: "application/json",
  "user-agent": "claude-cli/2.1.197 (external, sdk-cli)",
  "x-stainless-lang": "js",
  "x-stainless-retry-count": "0",
  "x-stainless-timeout": "600",
  "anthropic-beta":
    "claude-code-20250219,interleaved-thinking-2025-05-14,thinking-token-count-2026-05-13,context-management-2025-06-27,prompt-caching-scope-2026-01-05,effort-2025-11-24",
  "anthropic-dangerous-direct-browser-access": "true",
  "anthropic-version": "2023-06-01",
  "x-app": "cli",
};

const ephemeral = { cache_control: { type: "ephemeral" } };

export const claudeCodeTurn = (model: string) => ({
  model,
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "<system-reminder>\nAvailable agent types for the Agent tool: none\n</system-reminder>" },
        { type: "text", text: "Say hello" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "SIGNATURE" },
        { type: "tool_use", id: "toolu_2", name: "mcp__orders__lookup_order", input: { number: 7 } },
      ],
    },
    {
      role: "user",
      content: [
        {
          tool_use_id: "toolu_2",
          type: "tool_result",
          content: [{ type: "text", text: "Order 7 is shipped." }],
          ...ephemeral,
        },
      ],
    },
  ],
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.197.1c0; cc_entrypoint=sdk-cli;" },
    { type: "text", text: "You are a Claude agent, built on Anthropic's Claude Agent SDK.", ...ephemeral },
    { type: "text", text: "\nYou are an interactive agent that helps users with software tasks.", ...ephemeral },
  ],
  tools: [
    {
      name: "Bash",
      description: "Executes a given bash command and returns its output.",
      input_schema: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: {
          command: { description: "The command to execute", type: "string" },
          timeout: { description: "Optional timeout in milliseconds (max 600000)", type: "number" },
        },
        required: ["command"],
        additionalProperties: false,
      },
    },
    {
      name: "mcp__orders__lookup_order",
      description: "Looks up an order by its number.",
      input_schema: {
        type: "object",
        properties: {
          number: { type: "integer", description: "The order's number" },
          fields: { type: "array", items: { type: "string", enum: ["status", "price"] } },
        },
        required: ["number"],
        additionalProperties: false,
      },
    },
  ],
  metadata: { user_id: '{"device_id":"e28ad5","account_uuid":"","session_id":"31d5e4a1"}' },
  max_tokens: 32_000,
  thinking: { type: "adaptive" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  stream: true,
});

export const codexHeaders = {
  accept: "text/event-stream",
  "x-codex-beta-features": "remote_compaction_v2",
  "session-id": "01a20420-339b-75b2-828c-8693c31ce023",
  originator: "codex_exec",
  "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm",
};
