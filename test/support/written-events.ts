import { expect } from "vitest";
import type { Format } from "#formats";
import { framesOf } from "./formats-gemini-assemble.ts";
import { eventsOf } from "./formats-responses-assemble.ts";

function chatFrames(text: string): unknown[] {
  const frames = text.split("\n\n");
  expect(frames.pop()).toBe("");
  return frames.map((frame) => {
    expect(frame).toMatch(/^data: (\{[^\n]*\}|\[DONE\])$/);
    const data = frame.slice("data: ".length);
    return data === "[DONE]" ? data : JSON.parse(data);
  });
}

/** Reads the events of a stream of each format, and checks how they are written. */
export const writtenEvents: Readonly<Record<Format, (text: string) => unknown[]>> = {
  chat: chatFrames,
  messages: eventsOf,
  responses: eventsOf,
  gemini: framesOf,
};
