export type Language = "node" | "python" | "go";

/** A third-party client and the file that tests it. */
export interface Client {
  readonly name: string;
  readonly language: Language;
  /** The packages to install, in their newest versions. The first is the client itself. */
  readonly packages: readonly string[];
  /** A path in the folder of its language. */
  readonly file: string;
}

const node = (name: string, file: string, ...packages: string[]): Client => ({
  name,
  language: "node",
  packages,
  file: `${file}.mjs`,
});
const python = (name: string, file: string, ...packages: string[]): Client => ({
  name,
  language: "python",
  packages: [...packages, "pytest"],
  file: `test_${file}.py`,
});
const aiSdk = ["@ai-sdk/openai", "@ai-sdk/anthropic", "@ai-sdk/google", "@ai-sdk/openai-compatible"];

export const clients: readonly Client[] = [
  node("openai-node", "openai", "openai", "zod"),
  node("anthropic-node", "anthropic", "@anthropic-ai/sdk", "zod"),
  node("google-node", "google", "@google/genai"),
  node("ai-sdk", "ai-sdk", "ai", ...aiSdk, "zod"),
  python("openai-python", "openai", "openai"),
  python("anthropic-python", "anthropic", "anthropic"),
  python("google-python", "google", "google-genai"),
  python("langchain-chat", "langchain_chat", "langchain-openai", "langchain-tests"),
  python("langchain-responses", "langchain_responses", "langchain-openai", "langchain-tests"),
  // Its tools and Responses import mcp.
  python("litellm", "litellm", "litellm", "mcp"),
  python("pydantic-ai", "pydantic_ai", "pydantic-ai-slim[openai,anthropic,google]"),
  python("openai-agents", "openai_agents", "openai-agents"),
  python("llm", "llm", "llm"),
  { name: "google-go", language: "go", packages: ["google.golang.org/genai"], file: "google_test.go" },
];
