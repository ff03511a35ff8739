import { expect } from "vitest";
import type { Face } from "./native-formats.ts";
import type { Refusal } from "./service-setup.ts";

/** The ping of each format in a silent stream: docs/api/wire-details.md. */
export const pings: Readonly<Record<string, string>> = {
  chat: ": ping\n\n",
  responses: ": ping\n\n",
  messages: 'event: ping\ndata: {"type": "ping"}\n\n',
  gemini: "\n\n",
  "gemini, as an array": "\n",
};

type Loose = Readonly<Record<string, unknown>>;

/** The data of every event of a whole stream. Fails on malformed events. */
export function eventsOf({ format, name }: Pick<Face, "format" | "name">, text: string): readonly Loose[] {
  if (name === "gemini, as an array") return JSON.parse(text) as Loose[];
  expect(text.endsWith("\n\n")).toBe(true);
  return text
    .slice(0, -2)
    .split("\n\n")
    .filter((frame) => frame !== ": ping" && (format !== "gemini" || frame !== ""))
    .flatMap((frame) => {
      const lines = frame.split("\n");
      const data = lines.pop() ?? "";
      expect(data).toMatch(/^data: /);
      if (data === "data: [DONE]") return [];
      const event = JSON.parse(data.slice(6)) as Loose;
      // Only formats with named events have a line for the name.
      expect(lines).toEqual(format === "responses" || format === "messages" ? [`event: ${String(event["type"])}`] : []);
      return event["type"] === "ping" ? [] : [event];
    });
}

/** The last events of a stream that failed. */
export function expectFailed(face: Face, events: readonly Loose[], refusal: Refusal, requestId: string | null): void {
  if (face.format !== "responses") {
    const { message = /./ } = refusal;
    const shown = face.shape({ ...refusal, message }, requestId ?? "");
    expect(events.at(-1)).toEqual(shown);
    expect(events.filter((event) => "error" in event)).toHaveLength(1);
    return;
  }
  const numbers = events.map((event) => event["sequence_number"]);
  expect(numbers).toEqual(numbers.map((_, at) => at));
  expect(events.at(-2)).toMatchObject({
    type: "response.failed",
    response: { status: "failed", error: { code: "server_error" }, store: false, usage: null },
  });
  const message = expect.stringMatching(/./) as string;
  const sequence_number = events.length - 1;
  expect(events.at(-1)).toEqual({ type: "error", code: refusal.code, message, param: null, sequence_number });
}

/** The text in the events of a stream. */
export const saidIn = ({ format }: Face, events: readonly Loose[]): string =>
  events
    .map((event) => {
      const { delta, choices, candidates } = event as Record<string, never[]>;
      switch (format) {
        case "chat":
          return (choices?.[0] as { delta?: { content?: string } } | undefined)?.delta?.content ?? "";
        case "messages":
          return (delta as { text?: string } | undefined)?.text ?? "";
        case "responses":
          return event["type"] === "response.output_text.delta" ? String(delta) : "";
        case "gemini": {
          const [candidate] = (candidates ?? []) as { content: { parts: { text?: string }[] } }[];
          return candidate?.content.parts.map(({ text = "" }) => text).join("") ?? "";
        }
      }
      return "";
    })
    .join("");

/** The text of a response, as far as it has arrived. */
export function readAlong(response: Response): { readonly text: () => string; readonly whole: Promise<string> } {
  let text = "";
  const decoder = new TextDecoder();
  const read = async () => {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes as Uint8Array, { stream: true });
    return text;
  };
  return { text: () => text, whole: read() };
}
