import { asking } from "../../bench/format-streams.ts";
import type { PlannedCall } from "./plan.ts";
import { promptOf, uploadBytes } from "./provider.ts";

export interface ChaosRequest {
  readonly path: string;
  readonly body: string | Buffer;
  readonly type: string;
  /** True if these are the last bytes of a complete response without an error. */
  readonly isWhole: (text: string) => boolean;
}

/** Looks like a video to a reader of its first bytes. */
const video = Buffer.concat([
  Buffer.from("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42", "latin1"),
  Buffer.alloc(uploadBytes - 24, 7),
]);

const json = (text: string) => {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
};
const has = (field: string) => (text: string) => json(text)?.[field] !== undefined;

/** Requires the last event to contain this text. */
const endsWith = (end: string) => (text: string) =>
  (
    text
      .trimEnd()
      .split(/\r?\n\r?\n/)
      .at(-1) ?? ""
  ).includes(end);

export function requestFor(call: PlannedCall): ChaosRequest {
  const { kind, model } = call;
  const prompt = promptOf(call);
  const post = (path: string, body: object, isWhole: ChaosRequest["isWhole"]): ChaosRequest => ({
    path,
    body: JSON.stringify(body),
    type: "application/json",
    isWhole,
  });
  const messages = [{ role: "user", content: prompt }];
  switch (kind) {
    case "chat json":
      return post(asking.chat.path(model), { model, messages, max_tokens: 100 }, has("choices"));
    case "chat stream": {
      const body = { model, messages, max_tokens: 100, stream: true, stream_options: { include_usage: true } };
      return post(asking.chat.path(model), body, endsWith("data: [DONE]"));
    }
    case "messages json":
      return post(asking.messages.path(model), { model, messages, max_tokens: 100 }, has("content"));
    case "messages stream":
      return post(
        asking.messages.path(model),
        { model, messages, max_tokens: 100, stream: true },
        endsWith("message_stop"),
      );
    case "responses json":
      return post(asking.responses.path(model), { model, input: prompt, max_output_tokens: 100 }, has("output"));
    case "responses stream":
      return post(
        asking.responses.path(model),
        { model, input: prompt, max_output_tokens: 100, stream: true },
        endsWith("response.completed"),
      );
    case "gemini json":
    case "gemini stream": {
      const body = {
        contents: [{ role: "user", parts: [{ text: prompt }] }],
        generationConfig: { maxOutputTokens: 100 },
      };
      const path = asking.gemini.path(model);
      if (kind === "gemini stream") return post(path, body, endsWith('"finishReason"'));
      return post(path.replace("streamGenerateContent?alt=sse", "generateContent"), body, has("candidates"));
    }
    case "embeddings":
      return post("/v1/embeddings", { model, input: prompt }, has("data"));
    case "image":
    case "payment":
      return post("/v1/images/generations", { model, prompt }, has("data"));
    case "video":
      return post("/v1/media/generations", { model, input: { prompt } }, has("files"));
    case "speech":
      return post("/v1/audio/speech", { model, input: prompt, voice: "alto" }, (text) => text.length > 0);
    case "upload":
      return { path: "/v1/uploads", body: video, type: "video/mp4", isWhole: has("id") };
  }
}
