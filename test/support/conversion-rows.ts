import type { Conversion } from "./conversions.ts";

const hi = { role: "user", content: "Hi" };
const user = (...content: object[]) => [{ role: "user", content }];
const chatUser = (...content: object[]) => ({ messages: user(...content) });
const messagesUser = (...content: object[]) => ({ messages: user(...content) });
const responsesUser = (...content: object[]) => ({ input: user(...content) });
const geminiUser = (...parts: object[]) => ({ contents: [{ role: "user", parts }] });

const schema = { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false };
const tools = {
  chat: [{ type: "function", function: { name: "f", description: "Does.", parameters: schema } }],
  messages: [{ name: "f", description: "Does.", input_schema: schema }],
  responses: [{ type: "function", name: "f", description: "Does.", parameters: schema }],
  gemini: [{ functionDeclarations: [{ name: "f", description: "Does.", parametersJsonSchema: schema }] }],
};
const tooled = <K extends keyof typeof tools>(format: K, fields: object = {}) => ({ tools: tools[format], ...fields });

const png = "iVBORw0KGgo=";
const pdf = "JVBERi0xLjQ=";
const link = "https://example.com/a.png";
const paper = "https://example.com/a.pdf";

const chatCalls = [
  { id: "call_1", type: "function", function: { name: "f", arguments: '{"a":"x"}' } },
  { id: "call_2", type: "function", function: { name: "f", arguments: '{"a":"y"}' } },
];
const blockCalls = [
  { type: "tool_use", id: "call_1", name: "f", input: { a: "x" } },
  { type: "tool_use", id: "call_2", name: "f", input: { a: "y" } },
];
const itemCalls = [
  { type: "function_call", call_id: "call_1", name: "f", arguments: '{"a":"x"}' },
  { type: "function_call", call_id: "call_2", name: "f", arguments: '{"a":"y"}' },
];
const partCalls = [
  { functionCall: { id: "call_1", name: "f", args: { a: "x" } } },
  { functionCall: { id: "call_2", name: "f", args: { a: "y" } } },
];

const imageBlock = { type: "image", source: { type: "base64", media_type: "image/png", data: png } };
const imageData = `data:image/png;base64,${png}`;
const result = (content: unknown) => ({ type: "tool_result", tool_use_id: "call_1", content });

const thinking = { type: "thinking", thinking: "Hm.", signature: "c2ln" };
const anthropicState = {
  type: "reasoning.text",
  text: "Hm.",
  signature: "c2ln",
  format: "anthropic-claude-v1",
  index: 0,
};
const reasoning = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "c2ln" };
const openaiState = { type: "reasoning.encrypted", id: "rs_1", data: "c2ln", format: "openai-responses-v1", index: 0 };
const googleState = { extra_content: { google: { thought_signature: "c2ln" } } };

const answered = { messages: [hi, { role: "assistant", content: "Yes?" }, hi] };
const chatResult = { role: "tool", tool_call_id: "call_1", content: "one" };
const partResult = { functionResponse: { id: "call_1", name: "f", response: { output: "one" } } };
const allTooled = {
  chat: tooled("chat"),
  messages: tooled("messages"),
  responses: tooled("responses"),
  gemini: tooled("gemini"),
};

const cacheMark = { cache_control: { type: "ephemeral", ttl: "1h" } };
/** A system prompt, a message and a tool, each with a breakpoint. */
const cached = (format: "chat" | "messages", mark: object) => {
  const system = { type: "text", text: "Be brief.", ...mark };
  const content = [{ type: "text", text: "Hi", ...mark }];
  const [tool] = tools[format];
  const fields = { tools: [{ ...tool, ...mark }] };
  if (format === "messages") return { ...fields, system: [system], messages: [{ role: "user", content }] };
  return {
    ...fields,
    messages: [
      { role: "system", content: [system] },
      { role: "user", content },
    ],
  };
};

const unnamed = { ignored: undefined };

/** docs/api/wire-details.md, "Conversion", by feature. */
export const rows: readonly Conversion[] = [
  {
    feature: "system prompt",
    requests: {
      chat: { messages: [{ role: "system", content: "Be brief." }, hi] },
      messages: { system: "Be brief." },
      responses: { instructions: "Be brief." },
      gemini: { systemInstruction: { parts: [{ text: "Be brief." }] } },
    },
    converted: {
      messages: { system: "Be brief.", messages: [{ role: "user" }] },
      responses: { input: [{ role: "system", content: "Be brief." }, hi] },
      gemini: { systemInstruction: { parts: [{ text: "Be brief." }] }, contents: [{ role: "user" }] },
    },
  },
  {
    feature: "several turns",
    requests: {
      chat: { messages: [hi, { role: "assistant", content: "Yes?" }, { role: "user", content: "Go on." }] },
      messages: { messages: [hi, { role: "assistant", content: "Yes?" }, { role: "user", content: "Go on." }] },
      responses: { input: [hi, { role: "assistant", content: "Yes?" }, { role: "user", content: "Go on." }] },
      gemini: {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: [{ text: "Yes?" }] },
          { role: "user", parts: [{ text: "Go on." }] },
        ],
      },
    },
    converted: {
      messages: {
        messages: [
          { role: "user", content: [{ text: "Hi" }] },
          { role: "assistant", content: [{ text: "Yes?" }] },
          { role: "user", content: [{ text: "Go on." }] },
        ],
      },
      responses: {
        input: [hi, { role: "assistant", content: [{ type: "output_text", text: "Yes?" }] }, { content: "Go on." }],
      },
    },
  },
  {
    feature: "tools",
    requests: allTooled,
  },
  {
    feature: "tools: strict schema",
    requests: {
      chat: { tools: [{ type: "function", function: { name: "f", parameters: schema, strict: true } }] },
      messages: { tools: [{ name: "f", input_schema: schema, strict: true }] },
      responses: { tools: [{ type: "function", name: "f", parameters: schema, strict: true }] },
      gemini: tooled("gemini", { toolConfig: { functionCallingConfig: { mode: "VALIDATED" } } }),
    },
    converted: {
      gemini: { toolConfig: { functionCallingConfig: { mode: "VALIDATED" } } },
    },
  },
  {
    feature: "tools: one must be called",
    without: allTooled,
    requests: {
      chat: tooled("chat", { tool_choice: "required" }),
      messages: tooled("messages", { tool_choice: { type: "any" } }),
      responses: tooled("responses", { tool_choice: "required" }),
      gemini: tooled("gemini", { toolConfig: { functionCallingConfig: { mode: "ANY" } } }),
    },
  },
  {
    feature: "tools: this one must be called",
    without: allTooled,
    requests: {
      chat: tooled("chat", { tool_choice: { type: "function", function: { name: "f" } } }),
      messages: tooled("messages", { tool_choice: { type: "tool", name: "f" } }),
      responses: tooled("responses", { tool_choice: { type: "function", name: "f" } }),
      gemini: tooled("gemini", {
        toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
      }),
    },
  },
  {
    feature: "tools: none may be called",
    without: allTooled,
    requests: {
      chat: tooled("chat", { tool_choice: "none" }),
      messages: tooled("messages", { tool_choice: { type: "none" } }),
      responses: tooled("responses", { tool_choice: "none" }),
      gemini: tooled("gemini", { toolConfig: { functionCallingConfig: { mode: "NONE" } } }),
    },
  },
  {
    feature: "tools: one call at a time",
    without: allTooled,
    requests: {
      chat: tooled("chat", { parallel_tool_calls: false }),
      messages: tooled("messages", { tool_choice: { type: "auto", disable_parallel_tool_use: true } }),
      responses: tooled("responses", { parallel_tool_calls: false }),
    },
    except: {
      gemini: {
        chat: { refused: "parallel_tool_calls" },
        messages: { refused: "tool_choice.disable_parallel_tool_use" },
        responses: { refused: "parallel_tool_calls" },
      },
    },
  },
  {
    feature: "tools: several may be called at once",
    without: allTooled,
    requests: {
      chat: tooled("chat", { parallel_tool_calls: true }),
      responses: tooled("responses", { parallel_tool_calls: true }),
    },
    except: {
      chat: { responses: { ignored: "parallel_tool_calls" } },
      messages: { chat: { ignored: "parallel_tool_calls" }, responses: { ignored: "parallel_tool_calls" } },
      responses: { chat: { ignored: "parallel_tool_calls" } },
      gemini: { chat: { ignored: "parallel_tool_calls" }, responses: { ignored: "parallel_tool_calls" } },
    },
  },
  {
    feature: "tools: free text (custom)",
    requests: {
      chat: { tools: [{ type: "custom", custom: { name: "f" } }] },
      responses: { tools: [{ type: "custom", name: "f" }] },
    },
    converted: {
      chat: { tools: [{ type: "function", function: { name: "f", parameters: { required: ["input"] } } }] },
      messages: { tools: [{ name: "f", input_schema: { required: ["input"] } }] },
      gemini: { tools: [{ functionDeclarations: [{ name: "f", parametersJsonSchema: { required: ["input"] } }] }] },
    },
    except: {
      messages: { chat: { refused: "tools[0].type" } },
      gemini: { chat: { refused: "tools[0].type" } },
    },
  },
  {
    feature: "tools: a namespace of functions",
    requests: {
      responses: { tools: [{ type: "namespace", name: "n", tools: tools.responses }] },
    },
    converted: {
      chat: { tools: [{ function: { name: "n__f", parameters: schema } }] },
      messages: { tools: [{ name: "n__f" }] },
      gemini: { tools: [{ functionDeclarations: [{ name: "n__f" }] }] },
    },
  },
  {
    feature: "tools: a search for tools that the caller runs",
    requests: { responses: { tools: [{ type: "tool_search", execution: "client", parameters: schema }] } },
    converted: {
      chat: { tools: [{ function: { name: "tool_search", parameters: schema } }] },
      messages: { tools: [{ name: "tool_search" }] },
      gemini: { tools: [{ functionDeclarations: [{ name: "tool_search" }] }] },
    },
  },
  {
    feature: "tools: web search without access to the web",
    requests: { responses: { tools: [{ type: "web_search", external_web_access: false }, tools.responses[0]] } },
    without: { responses: { tools: tools.responses } },
    except: { responses: { responses: { ignored: "tools.web_search" } } },
    everyOther: { responses: { ignored: "tools.web_search" } },
  },
  {
    feature: "parallel calls and their results",
    requests: {
      chat: {
        messages: [
          hi,
          { role: "assistant", content: null, tool_calls: chatCalls },
          { role: "tool", tool_call_id: "call_1", content: "one" },
          { role: "tool", tool_call_id: "call_2", content: "two" },
        ],
      },
      messages: {
        messages: [
          hi,
          { role: "assistant", content: blockCalls },
          ...user(result("one"), { ...result("two"), tool_use_id: "call_2" }),
        ],
      },
      responses: {
        input: [
          hi,
          ...itemCalls,
          { type: "function_call_output", call_id: "call_1", output: "one" },
          { type: "function_call_output", call_id: "call_2", output: "two" },
        ],
      },
      gemini: {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: partCalls },
          {
            role: "user",
            parts: [
              { functionResponse: { id: "call_1", name: "f", response: { output: "one" } } },
              { functionResponse: { id: "call_2", name: "f", response: { output: "two" } } },
            ],
          },
        ],
      },
    },
    converted: {
      messages: {
        messages: [
          { role: "user" },
          { role: "assistant", content: blockCalls },
          ...user(result("one"), { ...result("two"), tool_use_id: "call_2" }),
        ],
      },
    },
  },
  {
    feature: "a tool's result with an image",
    requests: {
      messages: {
        messages: [
          hi,
          { role: "assistant", content: blockCalls.slice(0, 1) },
          ...user(result([{ type: "text", text: "one" }, imageBlock])),
        ],
      },
      responses: {
        input: [
          hi,
          ...itemCalls.slice(0, 1),
          {
            type: "function_call_output",
            call_id: "call_1",
            output: [
              { type: "input_text", text: "one" },
              { type: "input_image", image_url: imageData },
            ],
          },
        ],
      },
      gemini: {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: partCalls.slice(0, 1) },
          {
            role: "user",
            parts: [
              {
                functionResponse: {
                  id: "call_1",
                  name: "f",
                  response: { output: "one" },
                  parts: [{ inlineData: { mimeType: "image/png", data: png } }],
                },
              },
            ],
          },
        ],
      },
    },
    converted: {
      chat: {
        messages: [
          hi,
          { role: "assistant" },
          { role: "tool", tool_call_id: "call_1", content: "one" },
          { role: "user", content: [{ type: "text" }, { type: "image_url", image_url: { url: imageData } }] },
        ],
      },
      messages: {
        messages: [{}, {}, { role: "user", content: [result("one"), { type: "text" }, imageBlock] }],
      },
      responses: {
        input: [
          hi,
          ...itemCalls.slice(0, 1),
          { type: "function_call_output", call_id: "call_1", output: "one" },
          { role: "user", content: [{ type: "input_text" }, { type: "input_image", image_url: imageData }] },
        ],
      },
      gemini: {
        contents: [
          {},
          {},
          { parts: [{ functionResponse: { id: "call_1", response: { output: "one" } } }] },
          { role: "user", parts: [{}, { inlineData: { mimeType: "image/png", data: png } }] },
        ],
      },
    },
  },
  {
    feature: "a tool's result that is an error",
    requests: {
      messages: {
        messages: [
          hi,
          { role: "assistant", content: blockCalls.slice(0, 1) },
          ...user({ ...result("no such file"), is_error: true }),
        ],
      },
      gemini: {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: partCalls.slice(0, 1) },
          {
            role: "user",
            parts: [{ functionResponse: { id: "call_1", name: "f", response: { error: "no such file" } } }],
          },
        ],
      },
    },
    converted: {
      chat: { messages: [hi, {}, { role: "tool", content: /error.*no such file/i }] },
      messages: {
        messages: [{}, {}, { content: [{ type: "tool_result", content: /error.*no such file/i }] }],
      },
      responses: {
        input: [hi, {}, { type: "function_call_output", output: /error.*no such file/i }],
      },
      gemini: {
        contents: [{}, {}, { parts: [{ functionResponse: { response: { output: "Error: no such file" } } }] }],
      },
    },
  },
  {
    feature: "image by link",
    requests: {
      chat: chatUser({ type: "image_url", image_url: { url: link } }),
      messages: messagesUser({ type: "image", source: { type: "url", url: link } }),
      responses: responsesUser({ type: "input_image", image_url: link }),
      gemini: geminiUser({ fileData: { fileUri: link, mimeType: "image/png" } }),
    },
  },
  {
    feature: "image by its bytes",
    requests: {
      chat: chatUser({ type: "image_url", image_url: { url: imageData } }),
      messages: messagesUser(imageBlock),
      responses: responsesUser({ type: "input_image", image_url: imageData }),
      gemini: geminiUser({ inlineData: { mimeType: "image/png", data: png } }),
    },
  },
  {
    feature: "document (PDF) by its bytes",
    requests: {
      chat: chatUser({ type: "file", file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${pdf}` } }),
      messages: messagesUser({
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: pdf },
      }),
      responses: responsesUser({
        type: "input_file",
        filename: "a.pdf",
        file_data: `data:application/pdf;base64,${pdf}`,
      }),
      gemini: geminiUser({ inlineData: { mimeType: "application/pdf", data: pdf } }),
    },
    converted: {
      chat: chatUser({ type: "file", file: { file_data: `data:application/pdf;base64,${pdf}` } }),
      responses: responsesUser({ type: "input_file", file_data: `data:application/pdf;base64,${pdf}` }),
    },
  },
  {
    feature: "document by link",
    requests: {
      messages: messagesUser({ type: "document", source: { type: "url", url: paper } }),
      responses: responsesUser({ type: "input_file", file_url: paper }),
      gemini: geminiUser({ fileData: { fileUri: paper, mimeType: "application/pdf" } }),
    },
    except: {
      chat: {
        messages: { refused: "messages" },
        responses: { refused: "input" },
        gemini: { refused: "contents" },
      },
    },
  },
  {
    feature: "document of plain text",
    requests: {
      messages: messagesUser({ type: "document", source: { type: "text", media_type: "text/plain", data: "Once." } }),
      gemini: geminiUser({ inlineData: { mimeType: "text/plain", data: "T25jZS4=" } }),
    },
    converted: {
      chat: { messages: [{ role: "user", content: /Once\./ }] },
      messages: { messages: [{ role: "user", content: [{ type: "text", text: "Once." }] }] },
      responses: { input: [{ role: "user", content: /Once\./ }] },
      gemini: geminiUser({ text: "Once." }),
    },
  },
  {
    feature: "sound by its bytes",
    requests: {
      chat: chatUser({ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }),
      responses: responsesUser({ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }),
      gemini: geminiUser({ inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }),
    },
    except: {
      messages: {
        chat: { refused: "messages[0].content[0].type" },
        responses: { refused: "input" },
        gemini: { refused: "contents" },
      },
    },
  },
  {
    feature: "answer by a JSON schema",
    requests: {
      chat: { response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } } },
      messages: { output_config: { format: { type: "json_schema", schema } } },
      responses: { text: { format: { type: "json_schema", name: "answer", schema, strict: true } } },
      gemini: { generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema } },
    },
  },
  {
    feature: "answer in JSON of any shape",
    requests: {
      chat: { response_format: { type: "json_object" } },
      responses: { text: { format: { type: "json_object" } } },
      gemini: { generationConfig: { responseMimeType: "application/json" } },
    },
    converted: {
      messages: { system: /JSON/ },
    },
  },
  {
    feature: "stop sequences",
    requests: {
      chat: { stop: ["END"] },
      messages: { stop_sequences: ["END"] },
      gemini: { generationConfig: { stopSequences: ["END"] } },
    },
    except: {
      responses: {
        chat: { refused: "stop" },
        messages: { refused: "stop_sequences" },
        gemini: { refused: "generationConfig.stopSequences" },
      },
    },
  },
  {
    feature: "temperature",
    requests: {
      chat: { temperature: 0.5 },
      messages: { temperature: 0.5 },
      responses: { temperature: 0.5 },
      gemini: { generationConfig: { temperature: 0.5 } },
    },
  },
  {
    feature: "top_p",
    requests: {
      chat: { top_p: 0.5 },
      messages: { top_p: 0.5 },
      responses: { top_p: 0.5 },
      gemini: { generationConfig: { topP: 0.5 } },
    },
  },
  {
    feature: "top_k",
    requests: { messages: { top_k: 5 }, gemini: { generationConfig: { topK: 5 } } },
    everyOther: { messages: { ignored: "top_k" }, gemini: { ignored: "generationConfig.topK" } },
  },
  {
    feature: "seed",
    requests: { chat: { seed: 7 }, gemini: { generationConfig: { seed: 7 } } },
    except: {
      messages: { chat: { ignored: "seed" }, gemini: { ignored: "generationConfig.seed" } },
      responses: { chat: { ignored: "seed" }, gemini: { ignored: "generationConfig.seed" } },
    },
  },
  {
    feature: "penalties",
    requests: { chat: { presence_penalty: 1 }, gemini: { generationConfig: { presencePenalty: 1 } } },
    except: {
      messages: { chat: { refused: "presence_penalty" }, gemini: { refused: "generationConfig.presencePenalty" } },
      responses: { chat: { refused: "presence_penalty" }, gemini: { refused: "generationConfig.presencePenalty" } },
    },
  },
  {
    feature: "several answers",
    requests: { chat: { n: 2 }, gemini: { generationConfig: { candidateCount: 2 } } },
    except: {
      messages: { chat: { refused: "n" }, gemini: { refused: "generationConfig.candidateCount" } },
      responses: { chat: { refused: "n" }, gemini: { refused: "generationConfig.candidateCount" } },
    },
  },
  {
    feature: "log probabilities",
    requests: {
      chat: { logprobs: true, top_logprobs: 2 },
      responses: { include: ["message.output_text.logprobs"], top_logprobs: 2 },
      gemini: { generationConfig: { responseLogprobs: true, logprobs: 2 } },
    },
    except: {
      messages: {
        chat: { refused: "logprobs" },
        responses: { refused: "include" },
        gemini: { refused: "generationConfig.responseLogprobs" },
      },
    },
  },
  {
    feature: "reasoning effort",
    requests: {
      chat: { reasoning_effort: "medium" },
      messages: { thinking: { type: "enabled", budget_tokens: 8192 } },
      responses: { reasoning: { effort: "medium" } },
      gemini: { generationConfig: { thinkingConfig: { thinkingLevel: "MEDIUM" } } },
    },
  },
  {
    feature: "reasoning state of Anthropic's",
    requests: {
      chat: { messages: [hi, { role: "assistant", content: "Yes?", reasoning_details: [anthropicState] }, hi] },
      messages: { messages: [hi, { role: "assistant", content: [thinking, { type: "text", text: "Yes?" }] }, hi] },
    },
    converted: { messages: { messages: [{}, { role: "assistant", content: [thinking, { text: "Yes?" }] }, {}] } },
    except: {
      chat: { chat: unnamed, messages: unnamed },
      responses: { chat: unnamed, messages: unnamed },
      gemini: { chat: unnamed, messages: unnamed },
    },
    without: { chat: answered, messages: { messages: answered.messages } },
  },
  {
    feature: "reasoning state of OpenAI's",
    hiddenReasoning: true,
    requests: {
      chat: { messages: [hi, { role: "assistant", content: "Yes?", reasoning_details: [openaiState] }, hi] },
      responses: { input: [hi, reasoning, { role: "assistant", content: "Yes?" }, hi] },
    },
    converted: { responses: { input: [hi, reasoning, { role: "assistant" }, hi] } },
    except: {
      chat: { chat: unnamed, responses: { ignored: "reasoning.encrypted_content" } },
      messages: { chat: unnamed, responses: { ignored: "reasoning.encrypted_content" } },
      gemini: { chat: unnamed, responses: { ignored: "reasoning.encrypted_content" } },
    },
    without: { chat: answered, responses: { input: answered.messages } },
  },
  {
    feature: "reasoning state of Google's",
    requests: {
      chat: {
        messages: [
          hi,
          { role: "assistant", content: null, tool_calls: [{ ...chatCalls[0], ...googleState }] },
          chatResult,
        ],
      },
      gemini: {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: [{ ...partCalls[0], thoughtSignature: "c2ln" }] },
          { role: "user", parts: [partResult] },
        ],
      },
    },
    except: {
      chat: { chat: unnamed, gemini: unnamed },
      messages: { chat: unnamed, gemini: unnamed },
      responses: { chat: unnamed, gemini: unnamed },
    },
    without: {
      chat: { messages: [hi, { role: "assistant", content: null, tool_calls: chatCalls.slice(0, 1) }, chatResult] },
      gemini: {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: partCalls.slice(0, 1) },
          { role: "user", parts: [partResult] },
        ],
      },
    },
  },
  {
    feature: "who the caller's user is",
    requests: { chat: { user: "u1" }, messages: { metadata: { user_id: "u1" } }, responses: { user: "u1" } },
    except: {
      chat: { messages: { ignored: "metadata" } },
      messages: { chat: { ignored: "user" }, responses: { ignored: "user" } },
      responses: { messages: { ignored: "metadata" } },
      gemini: { chat: { ignored: "user" }, messages: { ignored: "metadata" }, responses: { ignored: "user" } },
    },
  },
  {
    feature: "key of the prompt cache",
    requests: { chat: { prompt_cache_key: "k" }, responses: { prompt_cache_key: "k" } },
    except: {
      messages: { chat: { ignored: "prompt_cache_key" }, responses: { ignored: "prompt_cache_key" } },
      gemini: { chat: { ignored: "prompt_cache_key" }, responses: { ignored: "prompt_cache_key" } },
    },
  },
  {
    feature: "metadata of the caller's own",
    requests: { chat: { metadata: { a: "b" } }, responses: { metadata: { a: "b" } } },
    except: {
      chat: { responses: { ignored: "metadata" } },
      messages: { chat: { ignored: "metadata" }, responses: { ignored: "metadata" } },
      gemini: { chat: { ignored: "metadata" }, responses: { ignored: "metadata" } },
    },
  },
  {
    feature: "verbosity",
    requests: { chat: { verbosity: "low" }, responses: { text: { verbosity: "low" } } },
    except: {
      messages: { chat: { ignored: "verbosity" }, responses: { ignored: "text.verbosity" } },
      gemini: { chat: { ignored: "verbosity" }, responses: { ignored: "text.verbosity" } },
    },
  },
  {
    feature: "marks of what is to be cached",
    without: { chat: cached("chat", {}), messages: cached("messages", {}) },
    requests: { chat: cached("chat", cacheMark), messages: cached("messages", cacheMark) },
    converted: {
      messages: { ...cached("messages", cacheMark), messages: [{ content: [{ text: "Hi", ...cacheMark }] }] },
    },
    except: {
      chat: { chat: { ignored: "cache_control" } },
      responses: { chat: { ignored: "cache_control" } },
      gemini: { chat: { ignored: "cache_control" } },
    },
    everyOther: { messages: { ignored: "cache_control" } },
  },
  {
    feature: "citations of documents",
    without: {
      messages: messagesUser({
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "Once." },
      }),
    },
    requests: {
      messages: messagesUser({
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "Once." },
        citations: { enabled: true },
      }),
    },
    everyOther: { messages: { ignored: "citations" } },
  },
  {
    feature: "safety settings",
    requests: { gemini: { safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }] } },
    everyOther: { gemini: { ignored: "safetySettings" } },
  },
  {
    feature: "a spoken answer",
    requests: {
      chat: { modalities: ["text", "audio"], audio: { voice: "alloy", format: "wav" } },
      gemini: { generationConfig: { responseModalities: ["AUDIO"] } },
    },
    except: { responses: { chat: { refused: "audio" } } },
    everyOther: {
      chat: { refused: "modalities" },
      gemini: { refused: "generationConfig.responseModalities" },
    },
  },
  {
    feature: "predicted output",
    requests: { chat: { prediction: { type: "content", content: "x" } } },
    everyOther: { chat: { refused: "prediction" } },
  },
  {
    feature: "web search by the provider",
    requests: { chat: { web_search_options: { search_context_size: "low" } } },
    everyOther: { chat: { refused: "web_search_options" } },
  },
];
