import { noCapacity, upstreamError } from "#errors";
import { imageInput, type MediaInput, mediaInput } from "#formats";
import type { JsonObject } from "#json";
import { dayMs } from "#platform/clock";
import { type Answer, type CallContext, FailedWork, failureReason } from "../run-call/context.ts";
import { headersOf } from "./convert.ts";
import { inInput, prepare, withJob } from "./generation.ts";
import { streamSpeech } from "./speech.ts";

/** One minute of the best video that providers sell takes a few hundred megabytes. */
const maxFileBytes = 512 * 1024 * 1024;
const maxInlineImageBytes = 64 * 1024 * 1024;
/** Typical size of an image; memory for it is reserved before a provider is called. */
const usualImageBytes = 2 * 1024 * 1024;
/** Only two of the image, its base64 and the answer's text are in memory at the same time. */
const inlineImageCopies = 3;

export async function image(call: CallContext): Promise<Answer> {
  const { request, model, catalog } = call;
  const parsed = imageInput(request);
  const ignored = catalog.ignoredInput(model, request);
  const isEdit = call.payload.endpoint === "/v1/images/edits";
  const format = request["response_format"] ?? (isEdit ? model.defaultEditFormat : model.defaultResponseFormat);
  if (format === "b64_json") {
    const { files, output, ...rest } = await generate(call, parsed, inlineImages(call));
    return { ...rest, ...headersOf(call, ignored), text: JSON.stringify(imageResponse(lifeOf(call), files, output)) };
  }
  const { files, output, ...rest } = await generate(call, parsed, storedFiles(call));
  const images = files.map(({ url, expiresAt, about }) => ({ url, expiresAt, about }));
  const text = JSON.stringify(imageResponse(lifeOf(call, files), images, output));
  return { ...rest, ...headersOf(call, ignored), text };
}

/** Handles every other call that generates files or reads one. */
export async function media(call: CallContext): Promise<Answer> {
  if (call.payload.stream) return streamSpeech(call);
  const { requestId, model } = call.payload;
  const parsed = mediaInput(call.request);
  const { files, output, ...rest } = await generate(call, parsed, storedFiles(call));
  const identity = { id: requestId.replace("req_", "gen_"), model, ...lifeOf(call, files) };
  return { ...rest, ...headersOf(call, []), text: JSON.stringify(mediaResponse(identity, output, files)) };
}

/** An answer expires with its first file, or a day from now if it has none. */
function lifeOf({ clock }: CallContext, files: readonly StoredFile[] = []) {
  const createdAt = files[0]?.createdAt ?? clock.now();
  return { createdAt, expiresAt: createdAt + dayMs };
}

interface FileSink<T> {
  store(body: Buffer | AsyncIterable<Buffer>, about: JsonObject, signal: AbortSignal): Promise<T>;
  discard(files: readonly T[]): Promise<void>;
}

async function generate<T>(call: CallContext, parsed: MediaInput, sink: FileSink<T>) {
  const { upstreams, files } = call;
  const { input, ask, isResumable } = await prepare(call, parsed);
  // Checks storage first: otherwise the provider would be paid for what cannot be stored.
  await files.ping().catch((error: unknown) => {
    throw noCapacity("Storage for generated files is unavailable; nothing was charged.", 5, error);
  });
  let generated: T[] = [];
  try {
    const { output, usage } = await upstreams.once(withJob(call), async (candidate, signal, span) => {
      await sink.discard(generated);
      generated = [];
      return ask(candidate, signal, span, async (body, about = {}) => {
        generated.push(await sink.store(body, about, signal));
      });
    });
    if (Object.values(usage).every((count) => !count)) throw upstreamError("The upstream generated nothing.");
    return { files: generated as readonly T[], output, usage, estimated: false, input, isResumable: isResumable() };
  } catch (error) {
    await sink.discard(generated);
    const named = parsed.input.at === "input" ? inInput(error) : error;
    throw new FailedWork(failureReason(call.signal, named), { isResumable: isResumable() });
  }
}

type StoredFile = GeneratedFile & { readonly id: string; readonly createdAt: number };

const storedFiles = ({ files, payload }: CallContext): FileSink<StoredFile> => ({
  async store(body, about, signal) {
    const { account, requestId, publicUrl = "" } = payload;
    const file = await files.generated.store({ account, requestId, body, limitBytes: maxFileBytes, signal });
    return { ...file, url: `${publicUrl}/media/${file.id}`, about };
  },
  async discard(stored) {
    if (stored.length > 0) await files.generated.delete(stored.map(({ id }) => id));
  },
});

/** A sink for answers that carry the bytes themselves. */
function inlineImages({
  request: { n },
  reserveMemory,
}: CallContext): FileSink<{ readonly b64_json: string; readonly about: JsonObject }> {
  let takenBytes = 0;
  let neededBytes = 0;
  const take = (bytes: number) => {
    if (bytes <= takenBytes) return;
    reserveMemory(bytes - takenBytes);
    takenBytes = bytes;
  };
  take(inlineImageCopies * usualImageBytes * (typeof n === "number" ? n : 1));
  return {
    async store(body, about) {
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of Buffer.isBuffer(body) ? [body] : body) {
        bytes += chunk.length;
        if (bytes > maxInlineImageBytes) throw upstreamError("The upstream's image is too large.");
        neededBytes += inlineImageCopies * chunk.length;
        take(neededBytes);
        chunks.push(chunk);
      }
      return { b64_json: Buffer.concat(chunks).toString("base64"), about };
    },
    async discard(images) {
      for (const { b64_json } of images) neededBytes -= inlineImageCopies * Buffer.byteLength(b64_json, "base64");
    },
  };
}

/** A generated file in a response. Times are unix milliseconds. */
interface GeneratedFile {
  readonly url: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly expiresAt: number;
  /** Further fields of the provider. */
  readonly about: Readonly<Record<string, unknown>>;
}

const seconds = (ms: number) => Math.floor(ms / 1000);

type Lifetime = Pick<GeneratedFile, "expiresAt"> & { readonly createdAt: number };

type GeneratedImage = (Pick<GeneratedFile, "url" | "expiresAt"> | { readonly b64_json: string }) &
  Pick<GeneratedFile, "about">;

/** docs/api/inference.md, "ImageResponse". `usage` holds the tokens if the provider counted them. */
export const imageResponse = (
  { createdAt, expiresAt }: Lifetime,
  images: readonly GeneratedImage[],
  { usage }: Readonly<Record<string, unknown>> = {},
) => ({
  created: seconds(createdAt),
  expires_at: seconds(expiresAt),
  data: images.map(({ about, ...image }) => {
    const { expiresAt: imageExpiresAt, ...content } = { expiresAt, ...image };
    return { ...about, ...content, expires_at: seconds(imageExpiresAt) };
  }),
  ...(typeof usage === "object" && usage !== null && { usage }),
});

/** docs/api/inference.md, "MediaResponse". */
export const mediaResponse = (
  identity: Lifetime & { readonly id: string; readonly model: string },
  output: Readonly<Record<string, unknown>>,
  files: readonly GeneratedFile[],
) => ({
  id: identity.id,
  object: "media.generation" as const,
  created: seconds(identity.createdAt),
  model: identity.model,
  expires_at: seconds(identity.expiresAt),
  output,
  files: files.map(({ url, contentType, bytes, expiresAt, about }) => ({
    ...about,
    url,
    content_type: contentType,
    bytes,
    expires_at: seconds(expiresAt),
  })),
});
