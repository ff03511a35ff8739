import { expect, test } from "vitest";
import { type ErrorCode, ServiceError } from "#errors";
import type { Format } from "#formats";
import type { JsonObject } from "#json";
import { converters, type StreamWriter } from "../../workers/conversion/index.ts";
import { type Fixture, fixtures, outcomeOf, wanted } from "../support/fixtures.ts";
import { writtenEvents } from "../support/written-events.ts";

interface Case extends Fixture {
  /** Chunks of chat, or events of the format. */
  readonly items: readonly JsonObject[];
  /** The caller's request, if the answer depends on it. */
  readonly request?: JsonObject;
  /** The error by which the stream ends. */
  readonly error?: { readonly code: ErrorCode; readonly message: string };
  /** Usage in chat's shape after the last item; null if there is none. */
  readonly usage: unknown;
  /** The usage of an interrupted stream, if it differs. */
  readonly usageSoFar?: unknown;
  readonly outputBytes?: number;
}

const created = 1_700_000_000;
const identity = { model: "local/chat", created, id: "chatcmpl-req_abc", now: () => created + 5 };
const estimate = { input: 7, output: 9 };

/** The events written for each item, and those of the end. */
function written(writer: StreamWriter, { items, error, format }: Case): unknown[][] {
  const read = writtenEvents[format as Format];
  const events = items.map((item) => read(writer.write(item)));
  const end = error ? writer.fail?.(new ServiceError(error)) : writer.end(estimate);
  return [...events, read(end ?? "")];
}

function counted(writer: StreamWriter, given: Case): unknown {
  const events = written(writer, given);
  expect(writer.outputBytes()).toBe(given.outputBytes ?? 0);
  expectUsage(writer, given);
  return events;
}

function expectUsage(stream: Pick<StreamWriter, "usage">, { usage, usageSoFar = usage }: Case): void {
  expect([stream.usage() ?? null, stream.usage(true) ?? null]).toEqual([usage, usageSoFar]);
}

type Run = (given: Case, format: Format) => unknown;
const directions: Readonly<Record<string, Run>> = {
  "to-chat": (given, format) => {
    const stream = converters[format].streamToChat();
    const chunks = given.items.map((item) => stream.write(item));
    expectUsage(stream, given);
    return chunks;
  },
  "from-chat": (given, format) => counted(converters[format].streamFromChat(identity, given.request ?? {}), given),
  native: (given, format) => counted(converters[format].native.stream(identity), given),
};

test.each(fixtures<Case, Run>("stream", directions))("$format, $direction: $name", (given) => {
  expect(outcomeOf(given, () => ({ result: given.run(given, given.format as Format) }))).toEqual(wanted(given));
});
