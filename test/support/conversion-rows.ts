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

const unnamed = { leftOut: undefined };

/** What "What crosses, what is dropped, what is refused" of the providers' formats comes to, feature by feature. */
export const rows: readonly Conversion[] = [
  {
    feature: "system prompt",
    ask: {
      chat: { messages: [{ role: "system", content: "Be brief." }, hi] },
      messages: { system: "Be brief." },
      responses: { instructions: "Be brief." },
      gemini: { systemInstruction: { parts: [{ text: "Be brief." }] } },
    },
    got: {
      chat: { messages: [{ role: "system", content: "Be brief." }, hi] },
      messages: { system: "Be brief.", messages: [{ role: "user" }] },
      responses: { input: [{ role: "system", content: "Be brief." }, hi] },
      gemini: { systemInstruction: { parts: [{ text: "Be brief." }] }, contents: [{ role: "user" }] },
    },
  },
  {
    feature: "several turns",
    ask: {
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
    got: {
      chat: { messages: [hi, { role: "assistant", content: "Yes?" }, { role: "user", content: "Go on." }] },
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
      gemini: {
        contents: [
          { role: "user", parts: [{ text: "Hi" }] },
          { role: "model", parts: [{ text: "Yes?" }] },
          { role: "user", parts: [{ text: "Go on." }] },
        ],
      },
    },
  },
  {
    feature: "tools",
    ask: allTooled,
    got: allTooled,
  },
  {
    feature: "tools: strict schema",
    ask: {
      chat: { tools: [{ type: "function", function: { name: "f", parameters: schema, strict: true } }] },
      messages: { tools: [{ name: "f", input_schema: schema, strict: true }] },
      responses: { tools: [{ type: "function", name: "f", parameters: schema, strict: true }] },
      gemini: tooled("gemini", { toolConfig: { functionCallingConfig: { mode: "VALIDATED" } } }),
    },
    got: {
      chat: { tools: [{ function: { strict: true } }] },
      messages: { tools: [{ strict: true }] },
      responses: { tools: [{ strict: true }] },
      gemini: { toolConfig: { functionCallingConfig: { mode: "VALIDATED" } } },
    },
  },
  {
    feature: "tools: one must be called",
    besides: allTooled,
    ask: {
      chat: tooled("chat", { tool_choice: "required" }),
      messages: tooled("messages", { tool_choice: { type: "any" } }),
      responses: tooled("responses", { tool_choice: "required" }),
      gemini: tooled("gemini", { toolConfig: { functionCallingConfig: { mode: "ANY" } } }),
    },
    got: {
      chat: { tool_choice: "required" },
      messages: { tool_choice: { type: "any" } },
      responses: { tool_choice: "required" },
      gemini: { toolConfig: { functionCallingConfig: { mode: "ANY" } } },
    },
  },
  {
    feature: "tools: this one must be called",
    besides: allTooled,
    ask: {
      chat: tooled("chat", { tool_choice: { type: "function", function: { name: "f" } } }),
      messages: tooled("messages", { tool_choice: { type: "tool", name: "f" } }),
      responses: tooled("responses", { tool_choice: { type: "function", name: "f" } }),
      gemini: tooled("gemini", {
        toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } },
      }),
    },
    got: {
      chat: { tool_choice: { type: "function", function: { name: "f" } } },
      messages: { tool_choice: { type: "tool", name: "f" } },
      responses: { tool_choice: { type: "function", name: "f" } },
      gemini: { toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } } },
    },
  },
  {
    feature: "tools: none may be called",
    besides: allTooled,
    ask: {
      chat: tooled("chat", { tool_choice: "none" }),
      messages: tooled("messages", { tool_choice: { type: "none" } }),
      responses: tooled("responses", { tool_choice: "none" }),
      gemini: tooled("gemini", { toolConfig: { functionCallingConfig: { mode: "NONE" } } }),
    },
    got: {
      chat: { tool_choice: "none" },
      messages: { tool_choice: { type: "none" } },
      responses: { tool_choice: "none" },
      gemini: { toolConfig: { functionCallingConfig: { mode: "NONE" } } },
    },
  },
  {
    feature: "tools: one call at a time",
    besides: allTooled,
    ask: {
      chat: tooled("chat", { parallel_tool_calls: false }),
      messages: tooled("messages", { tool_choice: { type: "auto", disable_parallel_tool_use: true } }),
      responses: tooled("responses", { parallel_tool_calls: false }),
    },
    got: {
      chat: { parallel_tool_calls: false },
      messages: { tool_choice: { type: "auto", disable_parallel_tool_use: true } },
      responses: { parallel_tool_calls: false },
    },
    but: {
      gemini: {
        chat: { refused: "parallel_tool_calls" },
        messages: { refused: "tool_choice.disable_parallel_tool_use" },
        responses: { refused: "parallel_tool_calls" },
      },
    },
  },
  {
    feature: "tools: several may be called at once",
    besides: allTooled,
    ask: {
      chat: tooled("chat", { parallel_tool_calls: true }),
      responses: tooled("responses", { parallel_tool_calls: true }),
    },
    got: { chat: tooled("chat") },
    but: {
      chat: { responses: { leftOut: "parallel_tool_calls" } },
      messages: { chat: { leftOut: "parallel_tool_calls" }, responses: { leftOut: "parallel_tool_calls" } },
      responses: { chat: { leftOut: "parallel_tool_calls" } },
      gemini: { chat: { leftOut: "parallel_tool_calls" }, responses: { leftOut: "parallel_tool_calls" } },
    },
  },
  {
    feature: "tools: free text (custom)",
    ask: {
      chat: { tools: [{ type: "custom", custom: { name: "f" } }] },
      responses: { tools: [{ type: "custom", name: "f" }] },
    },
    got: {
      chat: { tools: [{ type: "custom", custom: { name: "f" } }] },
      responses: { tools: [{ type: "custom", name: "f" }] },
    },
    but: {
      messages: { chat: { refused: "tools[0].type" }, responses: { refused: "tools" } },
      gemini: { chat: { refused: "tools[0].type" }, responses: { refused: "tools" } },
    },
  },
  {
    feature: "parallel calls and their results",
    ask: {
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
    got: {
      chat: {
        messages: [
          hi,
          { role: "assistant", tool_calls: chatCalls },
          { role: "tool", tool_call_id: "call_1", content: "one" },
          { role: "tool", tool_call_id: "call_2", content: "two" },
        ],
      },
      messages: {
        messages: [
          { role: "user" },
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
          { role: "user" },
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
  },
  {
    feature: "a tool's result with an image",
    ask: {
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
    got: {
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
    ask: {
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
    got: {
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
    ask: {
      chat: chatUser({ type: "image_url", image_url: { url: link } }),
      messages: messagesUser({ type: "image", source: { type: "url", url: link } }),
      responses: responsesUser({ type: "input_image", image_url: link }),
      gemini: geminiUser({ fileData: { fileUri: link, mimeType: "image/png" } }),
    },
    got: {
      chat: chatUser({ type: "image_url", image_url: { url: link } }),
      messages: messagesUser({ type: "image", source: { type: "url", url: link } }),
      responses: responsesUser({ type: "input_image", image_url: link }),
      gemini: geminiUser({ fileData: { fileUri: link, mimeType: "image/png" } }),
    },
  },
  {
    feature: "image by its bytes",
    ask: {
      chat: chatUser({ type: "image_url", image_url: { url: imageData } }),
      messages: messagesUser(imageBlock),
      responses: responsesUser({ type: "input_image", image_url: imageData }),
      gemini: geminiUser({ inlineData: { mimeType: "image/png", data: png } }),
    },
    got: {
      chat: chatUser({ type: "image_url", image_url: { url: imageData } }),
      messages: messagesUser(imageBlock),
      responses: responsesUser({ type: "input_image", image_url: imageData }),
      gemini: geminiUser({ inlineData: { mimeType: "image/png", data: png } }),
    },
  },
  {
    feature: "document (PDF) by its bytes",
    ask: {
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
    got: {
      chat: chatUser({ type: "file", file: { file_data: `data:application/pdf;base64,${pdf}` } }),
      messages: messagesUser({
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: pdf },
      }),
      responses: responsesUser({ type: "input_file", file_data: `data:application/pdf;base64,${pdf}` }),
      gemini: geminiUser({ inlineData: { mimeType: "application/pdf", data: pdf } }),
    },
  },
  {
    feature: "document by link",
    ask: {
      messages: messagesUser({ type: "document", source: { type: "url", url: paper } }),
      responses: responsesUser({ type: "input_file", file_url: paper }),
      gemini: geminiUser({ fileData: { fileUri: paper, mimeType: "application/pdf" } }),
    },
    got: {
      messages: messagesUser({ type: "document", source: { type: "url", url: paper } }),
      responses: responsesUser({ type: "input_file", file_url: paper }),
      gemini: geminiUser({ fileData: { fileUri: paper, mimeType: "application/pdf" } }),
    },
    but: {
      chat: {
        messages: { refused: "messages" },
        responses: { refused: "input" },
        gemini: { refused: "contents" },
      },
    },
  },
  {
    feature: "document of plain text",
    ask: {
      messages: messagesUser({ type: "document", source: { type: "text", media_type: "text/plain", data: "Once." } }),
      gemini: geminiUser({ inlineData: { mimeType: "text/plain", data: "T25jZS4=" } }),
    },
    got: {
      chat: { messages: [{ role: "user", content: /Once\./ }] },
      messages: { messages: [{ role: "user", content: [{ type: "text", text: "Once." }] }] },
      responses: { input: [{ role: "user", content: /Once\./ }] },
      gemini: geminiUser({ text: "Once." }),
    },
  },
  {
    feature: "sound by its bytes",
    ask: {
      chat: chatUser({ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }),
      responses: responsesUser({ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }),
      gemini: geminiUser({ inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }),
    },
    got: {
      chat: chatUser({ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }),
      responses: responsesUser({ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }),
      gemini: geminiUser({ inlineData: { mimeType: "audio/wav", data: "UklGRg==" } }),
    },
    but: {
      messages: {
        chat: { refused: "messages[0].content[0].type" },
        responses: { refused: "input" },
        gemini: { refused: "contents" },
      },
    },
  },
  {
    feature: "answer by a JSON schema",
    ask: {
      chat: { response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } } },
      messages: { output_config: { format: { type: "json_schema", schema } } },
      responses: { text: { format: { type: "json_schema", name: "answer", schema, strict: true } } },
      gemini: { generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema } },
    },
    got: {
      chat: { response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } } },
      messages: { output_config: { format: { type: "json_schema", schema } } },
      responses: { text: { format: { type: "json_schema", name: "answer", schema, strict: true } } },
      gemini: { generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema } },
    },
  },
  {
    feature: "answer in JSON of any shape",
    ask: {
      chat: { response_format: { type: "json_object" } },
      responses: { text: { format: { type: "json_object" } } },
      gemini: { generationConfig: { responseMimeType: "application/json" } },
    },
    got: {
      chat: { response_format: { type: "json_object" } },
      messages: { system: /JSON/ },
      responses: { text: { format: { type: "json_object" } } },
      gemini: { generationConfig: { responseMimeType: "application/json" } },
    },
  },
  {
    feature: "stop sequences",
    ask: {
      chat: { stop: ["END"] },
      messages: { stop_sequences: ["END"] },
      gemini: { generationConfig: { stopSequences: ["END"] } },
    },
    got: {
      chat: { stop: ["END"] },
      messages: { stop_sequences: ["END"] },
      gemini: { generationConfig: { stopSequences: ["END"] } },
    },
    but: {
      responses: {
        chat: { refused: "stop" },
        messages: { refused: "stop_sequences" },
        gemini: { refused: "generationConfig.stopSequences" },
      },
    },
  },
  {
    feature: "temperature",
    ask: {
      chat: { temperature: 0.5 },
      messages: { temperature: 0.5 },
      responses: { temperature: 0.5 },
      gemini: { generationConfig: { temperature: 0.5 } },
    },
    got: {
      chat: { temperature: 0.5 },
      messages: { temperature: 0.5 },
      responses: { temperature: 0.5 },
      gemini: { generationConfig: { temperature: 0.5 } },
    },
  },
  {
    feature: "top_p",
    ask: {
      chat: { top_p: 0.5 },
      messages: { top_p: 0.5 },
      responses: { top_p: 0.5 },
      gemini: { generationConfig: { topP: 0.5 } },
    },
    got: {
      chat: { top_p: 0.5 },
      messages: { top_p: 0.5 },
      responses: { top_p: 0.5 },
      gemini: { generationConfig: { topP: 0.5 } },
    },
  },
  {
    feature: "top_k",
    ask: { messages: { top_k: 5 }, gemini: { generationConfig: { topK: 5 } } },
    got: {},
    all: { messages: { leftOut: "top_k" }, gemini: { leftOut: "generationConfig.topK" } },
  },
  {
    feature: "seed",
    ask: { chat: { seed: 7 }, gemini: { generationConfig: { seed: 7 } } },
    got: { chat: { seed: 7 }, gemini: { generationConfig: { seed: 7 } } },
    but: {
      messages: { chat: { leftOut: "seed" }, gemini: { leftOut: "generationConfig.seed" } },
      responses: { chat: { leftOut: "seed" }, gemini: { leftOut: "generationConfig.seed" } },
    },
  },
  {
    feature: "penalties",
    ask: { chat: { presence_penalty: 1 }, gemini: { generationConfig: { presencePenalty: 1 } } },
    got: { chat: { presence_penalty: 1 }, gemini: { generationConfig: { presencePenalty: 1 } } },
    but: {
      messages: { chat: { refused: "presence_penalty" }, gemini: { refused: "generationConfig.presencePenalty" } },
      responses: { chat: { refused: "presence_penalty" }, gemini: { refused: "generationConfig.presencePenalty" } },
    },
  },
  {
    feature: "several answers",
    ask: { chat: { n: 2 }, gemini: { generationConfig: { candidateCount: 2 } } },
    got: { chat: { n: 2 }, gemini: { generationConfig: { candidateCount: 2 } } },
    but: {
      messages: { chat: { refused: "n" }, gemini: { refused: "generationConfig.candidateCount" } },
      responses: { chat: { refused: "n" }, gemini: { refused: "generationConfig.candidateCount" } },
    },
  },
  {
    feature: "log probabilities",
    ask: {
      chat: { logprobs: true, top_logprobs: 2 },
      responses: { include: ["message.output_text.logprobs"], top_logprobs: 2 },
      gemini: { generationConfig: { responseLogprobs: true, logprobs: 2 } },
    },
    got: {
      chat: { logprobs: true, top_logprobs: 2 },
      responses: { include: ["message.output_text.logprobs"], top_logprobs: 2 },
      gemini: { generationConfig: { responseLogprobs: true, logprobs: 2 } },
    },
    but: {
      messages: {
        chat: { refused: "logprobs" },
        responses: { refused: "include" },
        gemini: { refused: "generationConfig.responseLogprobs" },
      },
    },
  },
  {
    feature: "reasoning effort",
    ask: {
      chat: { reasoning_effort: "medium" },
      messages: { thinking: { type: "enabled", budget_tokens: 8192 } },
      responses: { reasoning: { effort: "medium" } },
      gemini: { generationConfig: { thinkingConfig: { thinkingLevel: "MEDIUM" } } },
    },
    got: {
      chat: { reasoning_effort: "medium" },
      messages: { thinking: { type: "enabled", budget_tokens: 8192 } },
      responses: { reasoning: { effort: "medium" } },
      gemini: { generationConfig: { thinkingConfig: { thinkingLevel: "MEDIUM" } } },
    },
  },
  {
    feature: "reasoning state of Anthropic's",
    ask: {
      chat: { messages: [hi, { role: "assistant", content: "Yes?", reasoning_details: [anthropicState] }, hi] },
      messages: { messages: [hi, { role: "assistant", content: [thinking, { type: "text", text: "Yes?" }] }, hi] },
    },
    got: { messages: { messages: [{}, { role: "assistant", content: [thinking, { text: "Yes?" }] }, {}] } },
    but: {
      chat: { chat: unnamed, messages: unnamed },
      responses: { chat: unnamed, messages: unnamed },
      gemini: { chat: unnamed, messages: unnamed },
    },
    besides: { chat: answered, messages: { messages: answered.messages } },
  },
  {
    feature: "reasoning state of OpenAI's",
    ask: {
      chat: { messages: [hi, { role: "assistant", content: "Yes?", reasoning_details: [openaiState] }, hi] },
      responses: { input: [hi, reasoning, { role: "assistant", content: "Yes?" }, hi] },
    },
    got: { responses: { input: [hi, reasoning, { role: "assistant" }, hi] } },
    but: {
      chat: { chat: unnamed, responses: { leftOut: "reasoning.encrypted_content" } },
      messages: { chat: unnamed, responses: { leftOut: "reasoning.encrypted_content" } },
      gemini: { chat: unnamed, responses: { leftOut: "reasoning.encrypted_content" } },
    },
    besides: { chat: answered, responses: { input: answered.messages } },
  },
  {
    feature: "reasoning state of Google's",
    ask: {
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
    got: { gemini: { contents: [{}, { parts: [{ functionCall: { id: "call_1" }, thoughtSignature: "c2ln" }] }, {}] } },
    but: {
      chat: { chat: unnamed, gemini: unnamed },
      messages: { chat: unnamed, gemini: unnamed },
      responses: { chat: unnamed, gemini: unnamed },
    },
    besides: {
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
    ask: { chat: { user: "u1" }, messages: { metadata: { user_id: "u1" } }, responses: { user: "u1" } },
    got: { chat: { user: "u1" } },
    but: {
      chat: { messages: { leftOut: "metadata" }, responses: { leftOut: "user" } },
      messages: { chat: { leftOut: "user" }, responses: { leftOut: "user" } },
      responses: { chat: { leftOut: "user" }, messages: { leftOut: "metadata" } },
      gemini: { chat: { leftOut: "user" }, messages: { leftOut: "metadata" }, responses: { leftOut: "user" } },
    },
  },
  {
    feature: "verbosity",
    ask: { chat: { verbosity: "low" }, responses: { text: { verbosity: "low" } } },
    got: { chat: { verbosity: "low" }, responses: { text: { verbosity: "low" } } },
    but: {
      messages: { chat: { leftOut: "verbosity" }, responses: { leftOut: "text.verbosity" } },
      gemini: { chat: { leftOut: "verbosity" }, responses: { leftOut: "text.verbosity" } },
    },
  },
  {
    feature: "marks of what is to be cached",
    besides: { messages: messagesUser({ type: "text", text: "Hi" }) },
    ask: { messages: messagesUser({ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }) },
    got: {},
    all: { messages: { leftOut: "cache_control" } },
  },
  {
    feature: "citations of documents",
    besides: {
      messages: messagesUser({
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "Once." },
      }),
    },
    ask: {
      messages: messagesUser({
        type: "document",
        source: { type: "text", media_type: "text/plain", data: "Once." },
        citations: { enabled: true },
      }),
    },
    got: {},
    all: { messages: { leftOut: "citations" } },
  },
  {
    feature: "safety settings",
    ask: { gemini: { safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }] } },
    got: {},
    all: { gemini: { leftOut: "safetySettings" } },
  },
  {
    feature: "a spoken answer",
    ask: {
      chat: { modalities: ["text", "audio"], audio: { voice: "alloy", format: "wav" } },
      gemini: { generationConfig: { responseModalities: ["AUDIO"] } },
    },
    got: {},
    but: { responses: { chat: { refused: "audio" } } },
    all: {
      chat: { refused: "modalities" },
      gemini: { refused: "generationConfig.responseModalities" },
    },
  },
  {
    feature: "predicted output",
    ask: { chat: { prediction: { type: "content", content: "x" } } },
    got: {},
    all: { chat: { refused: "prediction" } },
  },
  {
    feature: "web search by the provider",
    ask: { chat: { web_search_options: { search_context_size: "low" } } },
    got: {},
    all: { chat: { refused: "web_search_options" } },
  },
];
