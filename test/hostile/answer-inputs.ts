import type { MockProvider } from "../support/mock-provider.ts";
import { anthropicModel, geminiModel, type HostileInput, openaiModel, send, type Target } from "./input.ts";
import { type HostileAnswer, providerAnswers } from "./provider-answers.ts";

const modelOf: Partial<Record<HostileAnswer["provider"], string>> = {
  openai: openaiModel,
  anthropic: anthropicModel,
  gemini: geminiModel,
};

interface Caller {
  readonly name: string;
  readonly path: (model: string, isStream: boolean) => string;
  readonly body: (model: string, isStream: boolean) => object;
}

const hi = [{ role: "user", content: "Hi" }];
const streamed = (isStream: boolean) => (isStream ? { stream: true } : {});
const chatCaller: Caller = {
  name: "chat",
  path: () => "/v1/chat/completions",
  body: (model, isStream) => ({ model, messages: hi, ...streamed(isStream) }),
};
const callers: readonly Caller[] = [
  chatCaller,
  {
    name: "messages",
    path: () => "/v1/messages",
    body: (model, isStream) => ({ model, max_tokens: 4_000, messages: hi, ...streamed(isStream) }),
  },
  {
    name: "responses",
    path: () => "/v1/responses",
    body: (model, isStream) => ({ model, input: "Hi", ...streamed(isStream) }),
  },
  {
    name: "Gemini",
    path: (model, isStream) =>
      `/v1beta/models/${model}:${isStream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: () => ({ contents: [{ role: "user", parts: [{ text: "Hi" }] }] }),
  },
];

function asking(answer: HostileAnswer, path: string, ask: object) {
  return (target: Target) => {
    const provider = target[answer.provider] as MockProvider;
    const scripted = answer.make();
    const bytes = typeof scripted.body === "object" ? Buffer.from(JSON.stringify(scripted.body)) : scripted.body;
    const body = JSON.stringify(ask);
    return async () => {
      provider.always({ ...scripted, ...(bytes !== undefined && { body: bytes }) });
      try {
        return (await send(target, path, { body })).status;
      } finally {
        provider.always();
        // A success closes the circuit breaker.
        const model = modelOf[answer.provider];
        if (answer.fails && model !== undefined)
          await send(target, chatCaller.path("", false), { body: JSON.stringify(chatCaller.body(model, false)) });
      }
    };
  };
}

export const answerInputs: readonly HostileInput[] = providerAnswers.flatMap((answer): HostileInput[] => {
  const { name, provider, path, ask, isStream = false } = answer;
  const common = { kind: "answers" } as const;
  if (path && ask)
    return [
      { ...common, name: `${name}: ${path}`, isShort: answer.isShort === true, prepare: asking(answer, path, ask) },
    ];
  // OpenAI's answers are in its chat format, which is not used for callers of Responses.
  const model = modelOf[provider] ?? "";
  const asked = callers.filter((caller) => provider !== "openai" || caller.name !== "responses");
  return asked.map((caller, at) => ({
    ...common,
    name: `${name}, from ${provider}: ${caller.name}`,
    isShort: answer.isShort === true && at === 1,
    prepare: asking(answer, caller.path(model, isStream), caller.body(model, isStream)),
  }));
});
