import { expect, test } from "vitest";
import type { Format } from "#formats";
import type { JsonObject } from "#json";
import { converters, finishReasonReader, responsesFailure, tokenUsage } from "../../workers/conversion/index.ts";
import { type Fixture, fixtures, outcomeOf, wanted } from "../support/fixtures.ts";

interface Case extends Fixture {
  readonly answer: JsonObject;
  /** The caller's request, if the answer depends on it. */
  readonly request?: JsonObject;
  /** The events of a stream, or a whole answer. */
  readonly items?: readonly JsonObject[];
}

const created = 1_700_000_000;
const identity = { model: "local/chat", created, id: "chatcmpl-req_abc", now: () => created + 5 };
const estimate = { input: 7, output: 9 };

function finishReason(format: Format, items: readonly JsonObject[]): string | undefined {
  const reasons = items.map(finishReasonReader(format)).filter((reason) => reason !== undefined);
  return reasons.at(-1);
}

type Run = (given: Case, format: Format) => unknown;
const directions: Readonly<Record<string, Run>> = {
  "to-chat": ({ answer }, format) => converters[format].responseToChat(answer),
  "from-chat": ({ answer, request = {} }, format) => converters[format].responseFromChat(answer, identity, request),
  native: ({ answer }, format) => converters[format].native.finish(answer, identity, estimate),
  usage: ({ answer }, format) => converters[format].native.usage(answer),
  /** The tokens of usage in chat's shape, by price. */
  billed: ({ answer }) => tokenUsage(answer),
  failure: ({ answer }) => responsesFailure(answer),
  finish: ({ items = [] }, format) => finishReason(format, items),
};

test.each(fixtures<Case, Run>("answer", directions))("$format, $direction: $name", (given) => {
  expect(outcomeOf(given, () => ({ result: given.run(given, given.format as Format) }))).toEqual(wanted(given));
});
