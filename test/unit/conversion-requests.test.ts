import { expect, test } from "vitest";
import {
  type Codec,
  chatCodec,
  countedRequest,
  countTokensCodec,
  embeddingsCodec,
  type Format,
  geminiCodec,
  geminiCountCodec,
  imagesCodec,
  mediaCodec,
  messagesCodec,
  responsesCodec,
  type UploadRef,
} from "#formats";
import type { JsonObject } from "#json";
import type { UpstreamTarget } from "../../workers/conversion/converter.ts";
import { converters, ignoredParams, type ResolvedUpload } from "../../workers/conversion/index.ts";
import { type Fixture, fixtures, type Outcome, outcomeOf, wanted } from "../support/fixtures.ts";

interface Case extends Fixture {
  readonly request: JsonObject;
  /** Some fields of the upstream's model. */
  readonly target?: Partial<UpstreamTarget>;
  /** The contents of the uploads, by id. */
  readonly uploads?: Readonly<Record<string, ResolvedUpload>>;
}

const codecs: Readonly<Record<string, Codec>> = {
  chat: chatCodec,
  messages: messagesCodec,
  responses: responsesCodec,
  gemini: geminiCodec("gemini-3.8-flash", true, true),
  embeddings: embeddingsCodec,
  images: imagesCodec,
  media: mediaCodec,
};
const counters: Readonly<Record<string, Codec>> = {
  messages: countTokensCodec,
  gemini: geminiCountCodec("gemini-3.8-flash"),
};

function parsed(codec: Codec | undefined, request: unknown): Outcome {
  const call = codec?.parse(request, Buffer.byteLength(JSON.stringify(request)));
  if (!call) return { result: call };
  // formats-conversation.test.ts has the identity of conversations.
  const { conversation: _, ...result } = call;
  return { result: { ...result, features: Object.fromEntries(call.features) } };
}

/** The converted request, and the names of its ignored parameters. */
const converted = ({ request, ignored }: { request: unknown; ignored: readonly string[] }): Outcome => ({
  result: request,
  ignored,
});
const converterOf = ({ format }: Fixture) => converters[format as Format];

type Run = (given: Case) => Outcome;
const directions: Readonly<Record<string, Run>> = {
  parse: ({ format, request }) => parsed(codecs[format], request),
  count: ({ format, request }) => parsed(counters[format], request),
  /** The request inside one to count tokens. */
  counted: ({ request }) => ({ result: countedRequest(request) }),
  "to-chat": (given) => converted(converterOf(given).requestToChat(given.request)),
  "from-chat": (given) => converted(converterOf(given).requestFromChat(given.request, given.target)),
  native: (given) => {
    const target = { model: "m", cap: 100, capField: "max_tokens", ...given.target } as const;
    const ignored = ignoredParams();
    const request = converterOf(given).native.prepare(given.request, target, ignored);
    return { result: request, ignored: ignored.names() };
  },
  uploads: (given) => {
    const found: UploadRef[] = [];
    const result = converterOf(given).resolveUploads(given.request, (ref) => {
      found.push(ref);
      return given.uploads?.[ref.id] as ResolvedUpload;
    });
    // The API has found the same uploads.
    const request = { model: "m", max_tokens: 9, ...given.request };
    expect(codecs[given.format]?.parse(request, 100).uploads).toEqual(found);
    return { result };
  },
};

test.each(fixtures<Case, Run>("request", directions))("$format, $direction: $name", (given) => {
  expect(outcomeOf(given, () => given.run(given))).toEqual(wanted(given));
});
