import { mockMp4 } from "./mock-openai-media.ts";
import type { MockRequest, Usual } from "./mock-provider.ts";

/** The part of the Interactions API that videos need, and the store of their files. */

type Fields = Readonly<Record<string, unknown>>;

/** The parts of a new interaction that a test may script. */
export interface InteractionScript {
  /** Its states, one for each poll; the last one is repeated. By default it is done at the first poll. */
  readonly states?: readonly string[];
  /** Fields next to the last status, in place of the video. */
  readonly outcome?: Fields;
}

interface Interaction {
  readonly fields: Fields;
  readonly states: string[];
  readonly outcome: Fields;
}

const problem = (code: number, name: string, message: string): Usual => ({
  status: code,
  body: { error: { message, code: name } },
});

export function createMockInteractions() {
  const all = new Map<string, Interaction>();

  const begin = (body: Fields, { states = ["completed"], outcome }: InteractionScript, origin: string): Usual => {
    const wrong = invalidIn(body);
    if (wrong !== undefined) return problem(400, "invalid_request", wrong);
    const id = `v1_mock${all.size + 1}`;
    const uri = `${origin}/v1beta/files/video${all.size + 1}:download?alt=media`;
    const made = { type: "model_output", content: [{ type: "video", mime_type: "video/mp4", uri }] };
    const fields = { id, object: "interaction", model: body["model"], created: "2026-01-01T00:00:00Z" };
    all.set(id, { fields, states: [...states], outcome: outcome ?? { steps: [made], usage: usageOf(body) } });
    return { body: { ...fields, status: "in_progress" } };
  };

  const look = (id: string): Usual => {
    const found = all.get(id);
    if (!found) return problem(400, "invalid_request", "Invalid interaction name");
    const { fields, states, outcome } = found;
    const status = states.length > 1 ? states.shift() : states[0];
    const isOver = status !== "queued" && status !== "in_progress";
    return { body: { ...fields, status, ...(isOver && outcome) } };
  };

  return {
    answer({ method, body }: MockRequest, path: string, script: InteractionScript, origin: string): Usual | undefined {
      const [, id, cancel] = /^interactions\/([^/]+)(\/cancel)?$/.exec(path) ?? [];
      if (path === "interactions" && method === "POST") return begin(body, script, origin);
      if (id !== undefined && method === "GET") return look(id);
      if (id !== undefined && method === "DELETE") return all.delete(id) ? { body: {} } : look(id);
      if (id !== undefined && cancel) return look(id);
      return /^files\/video\d+:download$/.test(path) && method === "GET" ? fileAnswer() : undefined;
    },
    reset: () => all.clear(),
  };
}

/** The provider refuses unknown fields, and a number of seconds. */
function invalidIn({ model, input, background, store, response_format }: Fields): string | undefined {
  if (typeof model !== "string" || input === undefined) return "model and input are required";
  if (background === true && store === false) return "background needs store";
  const { type, duration, ...others } = (response_format ?? {}) as Fields;
  if (type !== "video") return "response_format.type: only video is mocked";
  if (duration !== undefined && !(typeof duration === "string" && /^\d+s$/.test(duration)))
    return "response_format.duration: no duration";
  const unknown = Object.keys(others).find((name) => !["aspect_ratio", "delivery", "resolution"].includes(name));
  return unknown && `response_format.${unknown}: unknown field`;
}

const usageOf = ({ response_format }: Fields): Fields => {
  const { duration } = response_format as { duration?: string };
  const tokens = 5_792 * Number.parseInt(duration ?? "8", 10);
  return { total_output_tokens: tokens, output_tokens_by_modality: [{ modality: "video", tokens }] };
};

/** A file in parts, without its length. */
const fileAnswer = (): Usual => ({
  headers: { "content-type": "video/mp4" },
  events: [mockMp4.subarray(0, 1_000), mockMp4.subarray(1_000, 20_000), mockMp4.subarray(20_000)],
});
