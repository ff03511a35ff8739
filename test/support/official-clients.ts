import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { type CallableTool, type GenerateContentResponse, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { toResponseInputItems } from "openai/lib/responses/ResponseInputItems";
import { z } from "zod";

/** The official clients, each as its documentation uses it. */
export interface OfficialClient {
  readonly name: string;
  readonly endpoint: string;
  /** How an answer ends: by itself, with calls, at the cap. */
  readonly ends: readonly [text: string, calls: string, cap: string];
  /** The whole answer, or a stream as the client's helper puts it together. */
  readonly ask: (access: Access, request: Request) => Promise<Answer>;
  /** An answer that the client parses by a schema. */
  readonly parse?: (access: Access, request: Request) => Promise<unknown>;
  /** Runs `get_weather` and sends its result until an answer has no calls. */
  readonly run?: (access: Access, request: Request, tool: (city: string) => string) => Promise<string>;
}

interface Access {
  readonly baseUrl: string;
  readonly key: string;
}
export interface Request {
  readonly model: string;
  readonly content: string;
  readonly stream: boolean;
  readonly cap?: number;
  /** Offers `get_weather` and `get_time`. */
  readonly tools?: boolean;
}
export interface Answer {
  readonly text: string;
  readonly model: string | undefined;
  readonly end: string;
  readonly usage: { readonly input: number; readonly output: number };
  readonly calls: readonly Call[];
}
export interface Call {
  readonly id: string | undefined;
  readonly name: string | undefined;
  readonly args: unknown;
}

const city = z.object({ city: z.string() });
const person = z.object({ name: z.string(), age: z.int() });
const names = ["get_weather", "get_time"] as const;
const citySchema = { type: "object" as const, properties: { city: { type: "string" } }, required: ["city"] };

const openaiOf = ({ baseUrl, key }: Access) => new OpenAI({ apiKey: key, baseURL: `${baseUrl}/v1`, maxRetries: 0 });
const anthropicOf = ({ baseUrl, key }: Access) => new Anthropic({ apiKey: key, baseURL: baseUrl, maxRetries: 0 });
const googleOf = ({ baseUrl, key }: Access) => new GoogleGenAI({ apiKey: key, httpOptions: { baseUrl } });

const saying = ({ model, content }: Request) => ({ model, messages: [{ role: "user" as const, content }] });

const chatRequest = ({ cap, tools, ...request }: Request) => ({
  ...saying(request),
  ...(cap && { max_tokens: cap }),
  ...(tools && {
    tools: names.map((name) => ({ type: "function" as const, function: { name, parameters: citySchema } })),
  }),
});

export const chatClient: OfficialClient = {
  name: "OpenAI's client, chat",
  endpoint: "/v1/chat/completions",
  ends: ["stop", "tool_calls", "length"],
  async ask(access, request) {
    const { completions } = openaiOf(access).chat;
    const { model, choices, usage } = request.stream
      ? await completions.stream(chatRequest(request)).finalChatCompletion()
      : await completions.create(chatRequest(request));
    const [{ message, finish_reason } = { message: undefined, finish_reason: "" }] = choices;
    return {
      text: message?.content ?? "",
      model,
      end: finish_reason,
      usage: { input: usage?.prompt_tokens ?? 0, output: usage?.completion_tokens ?? 0 },
      calls: (message?.tool_calls ?? []).map((call) => ({
        id: call.id,
        name: "function" in call ? call.function.name : "",
        args: JSON.parse("function" in call ? call.function.arguments : "") as unknown,
      })),
    };
  },
  async parse(access, request) {
    const { completions } = openaiOf(access).chat;
    const asked = { ...saying(request), response_format: zodResponseFormat(person, "person") };
    const { choices } = request.stream
      ? await completions.stream(asked).finalChatCompletion()
      : await completions.parse(asked);
    return choices[0]?.message.parsed;
  },
  async run(access, request, tool) {
    const weather = zodFunction({ name: "get_weather", parameters: city, function: (args) => tool(args.city) });
    const { completions } = openaiOf(access).chat;
    const asked = { ...saying(request), tools: [weather] };
    const runner = request.stream ? completions.runTools({ ...asked, stream: true }) : completions.runTools(asked);
    return (await runner.finalContent()) ?? "";
  },
};

const responsesTools = names.map((name) => zodResponsesFunction({ name, parameters: city }));
const responsesRequest = ({ model, content, cap, tools }: Request) => ({
  model,
  input: content,
  ...(cap && { max_output_tokens: cap }),
  ...(tools && { tools: responsesTools }),
});
const callsIn = (output: OpenAI.Responses.ResponseOutputItem[]) =>
  output.flatMap((item) => (item.type === "function_call" ? [item] : []));

export const responsesClient: OfficialClient = {
  name: "OpenAI's client, responses",
  endpoint: "/v1/responses",
  ends: ["completed", "completed", "max_output_tokens"],
  async ask(access, request) {
    const { responses } = openaiOf(access);
    const { model, output, usage, status, incomplete_details } = request.stream
      ? await responses.stream(responsesRequest(request)).finalResponse()
      : await responses.create(responsesRequest(request));
    const parts = output.flatMap((item) => (item.type === "message" ? item.content : []));
    return {
      text: parts.map((part) => (part.type === "output_text" ? part.text : "")).join(""),
      model,
      end: incomplete_details?.reason ?? status ?? "",
      usage: { input: usage?.input_tokens ?? 0, output: usage?.output_tokens ?? 0 },
      calls: callsIn(output).map(({ call_id, name, arguments: args }) => ({
        id: call_id,
        name,
        args: JSON.parse(args) as unknown,
      })),
    };
  },
  async parse(access, request) {
    const { responses } = openaiOf(access);
    const asked = { ...responsesRequest(request), text: { format: zodTextFormat(person, "person") } };
    const { output_parsed } = request.stream
      ? await responses.stream(asked).finalResponse()
      : await responses.parse(asked);
    return output_parsed;
  },
  async run(access, request, tool) {
    const { responses } = openaiOf(access);
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: request.content }];
    for (;;) {
      const asked = { model: request.model, input, tools: responsesTools.slice(0, 1) };
      const { output, output_text } = request.stream
        ? await responses.stream(asked).finalResponse()
        : await responses.create(asked);
      const calls = callsIn(output);
      if (calls.length === 0) return output_text;
      input.push(...toResponseInputItems(output));
      for (const { call_id, arguments: args } of calls) {
        const { city: asked } = city.parse(JSON.parse(args));
        input.push({ type: "function_call_output", call_id, output: tool(asked) });
      }
    }
  },
};

const messagesRequest = ({ cap = 1_000, tools, ...request }: Request) => ({
  ...saying(request),
  max_tokens: cap,
  ...(tools && { tools: names.map((name) => ({ name, input_schema: citySchema })) }),
});
const textOf = ({ content }: Pick<Anthropic.Message, "content">) =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("");

export const messagesClient: OfficialClient = {
  name: "Anthropic's client",
  endpoint: "/v1/messages",
  ends: ["end_turn", "tool_use", "max_tokens"],
  async ask(access, request) {
    const { messages } = anthropicOf(access);
    const message = request.stream
      ? await messages.stream(messagesRequest(request)).finalMessage()
      : await messages.create(messagesRequest(request));
    return {
      text: textOf(message),
      model: message.model,
      end: message.stop_reason ?? "",
      usage: { input: message.usage.input_tokens, output: message.usage.output_tokens },
      calls: message.content
        .filter((block) => block.type === "tool_use")
        .map(({ id, name, input }) => ({ id, name, args: input })),
    };
  },
  async parse(access, request) {
    const { messages } = anthropicOf(access);
    const asked = { ...messagesRequest(request), output_config: { format: zodOutputFormat(person) } };
    const { parsed_output } = request.stream
      ? await messages.stream(asked).finalMessage()
      : await messages.parse(asked);
    return parsed_output;
  },
  async run(access, request, tool) {
    const description = "Tells the weather";
    const run = (args: z.infer<typeof city>) => tool(args.city);
    const weather = betaZodTool({ name: "get_weather", description, inputSchema: city, run });
    const { stream } = request;
    const runner = anthropicOf(access).beta.messages.toolRunner({
      ...messagesRequest(request),
      tools: [weather],
      stream,
    });
    return textOf((await runner.runUntilDone()) as unknown as Anthropic.Message);
  },
};

const declared = names.map((name) => ({ name, parametersJsonSchema: citySchema }));
const geminiRequest = ({ model, content, cap, tools }: Request, more: object = {}) => ({
  model,
  contents: content,
  config: {
    ...(cap && { maxOutputTokens: cap }),
    ...(tools && { tools: [{ functionDeclarations: declared }] }),
    ...more,
  },
});
async function chunksOf(access: Access, request: Request, more?: object): Promise<GenerateContentResponse[]> {
  const { models } = googleOf(access);
  const asked = geminiRequest(request, more);
  if (!request.stream) return [await models.generateContent(asked)];
  return Array.fromAsync(await models.generateContentStream(asked));
}
const textIn = (chunks: readonly GenerateContentResponse[]) =>
  chunks.map(({ candidates }) => candidates?.[0]?.content?.parts?.map(({ text = "" }) => text).join("") ?? "").join("");

export const geminiClient: OfficialClient = {
  name: "Google's client",
  endpoint: "/v1beta/models",
  ends: ["STOP", "STOP", "MAX_TOKENS"],
  async ask(access, request) {
    const chunks = await chunksOf(access, request);
    const last = chunks.at(-1);
    const { promptTokenCount = 0, candidatesTokenCount = 0, thoughtsTokenCount = 0 } = last?.usageMetadata ?? {};
    return {
      text: textIn(chunks),
      model: last?.modelVersion,
      end: last?.candidates?.[0]?.finishReason ?? "",
      usage: { input: promptTokenCount, output: candidatesTokenCount + thoughtsTokenCount },
      calls: chunks
        .flatMap(({ functionCalls = [] }) => functionCalls)
        .map(({ id, name, args }) => ({ id, name, args })),
    };
  },
  async parse(access, request) {
    const responseJsonSchema = z.toJSONSchema(person);
    const chunks = await chunksOf(access, request, { responseMimeType: "application/json", responseJsonSchema });
    return person.parse(JSON.parse(textIn(chunks)));
  },
  async run(access, request, tool) {
    const weather: CallableTool = {
      tool: () => Promise.resolve({ functionDeclarations: declared.slice(0, 1) }),
      callTool: (calls) =>
        Promise.resolve(
          calls.map(({ id = "", name = "", args }) => ({
            functionResponse: { id, name, response: { output: tool(city.parse(args).city) } },
          })),
        ),
    };
    return textIn(await chunksOf(access, request, { tools: [weather] }));
  },
};

/** Has neither tools nor schemas. */
export const completionsClient: OfficialClient = {
  name: "OpenAI's client, completions",
  endpoint: "/v1/completions",
  ends: ["stop", "", "length"],
  async ask(access, { model, content, cap, stream }) {
    const { completions } = openaiOf(access);
    const asked = { model, prompt: content, ...(cap && { max_tokens: cap }) };
    const chunks = stream
      ? await Array.fromAsync(await completions.create({ ...asked, stream: true }))
      : [await completions.create(asked)];
    const { prompt_tokens = 0, completion_tokens = 0 } = chunks.at(-1)?.usage ?? {};
    return {
      text: chunks.map(({ choices }) => choices[0]?.text ?? "").join(""),
      model: chunks.at(-1)?.model,
      end: chunks.map(({ choices }) => choices[0]?.finish_reason ?? "").join(""),
      usage: { input: prompt_tokens, output: completion_tokens },
      calls: [],
    };
  },
};
