import { noCapacity, upstreamError } from "#errors";
import { imagesCodec, mediaCodec, type ParsedCall } from "#formats";
import type { ByteShare } from "#platform/byte-budget";
import { dayMs } from "#platform/clock";
import { type GeneratedFile, imageResponse, mediaResponse } from "../conversion/index.ts";
import type { JsonObject } from "../providers/index.ts";
import { type Answer, type CallContext, FailedWork, failureReason } from "../run-call/context.ts";
import { headersOf } from "./convert.ts";
import { inInput, noMemory, prepare, withJob } from "./generation.ts";
import { streamSpeech } from "./speech.ts";

/** A minute of the best video that providers sell has some hundred megabytes. */
const maxFileBytes = 512 * 1024 * 1024;
const maxInlineImageBytes = 64 * 1024 * 1024;
/** The size of most images: memory for as much is reserved before a provider is called. */
const usualImageBytes = 2 * 1024 * 1024;
/** An image, its base64 and the answer's text are not held at once, but two of them are. */
const inlineImageCopies = 3;

/** A call for images. */
export async function image(call: CallContext, memory: ByteShare): Promise<Answer> {
  const { request, model, catalog } = call;
  const parsed = imagesCodec.parse(request, 0);
  const ignored = catalog.ignoredInput(model, request);
  const headers = headersOf(call, ignored);
  const isEdit = call.payload.endpoint === "/v1/images/edits";
  const format = request["response_format"] ?? (isEdit ? model.defaultEditFormat : model.defaultResponseFormat);
  if (format === "b64_json") {
    const { files, output, ...rest } = await generate(call, parsed, inlineImages(call, memory), memory);
    return { ...rest, ...headers, text: JSON.stringify(imageResponse(lifeOf(call), files, output)) };
  }
  const { files, output, ...rest } = await generate(call, parsed, storedFiles(call), memory);
  const images = files.map(({ url, expiresAt, about }) => ({ url, expiresAt, about }));
  return { ...rest, ...headers, text: JSON.stringify(imageResponse(lifeOf(call, files), images, output)) };
}

/** Any other call that generates files, or reads one. */
export async function media(call: CallContext, memory: ByteShare): Promise<Answer> {
  if (call.payload.stream) return streamSpeech(call, memory);
  const { requestId, model } = call.payload;
  const parsed = mediaCodec.parse(call.request, 0);
  const { files, output, ...rest } = await generate(call, parsed, storedFiles(call), memory);
  const identity = { id: requestId.replace("req_", "gen_"), model, ...lifeOf(call, files) };
  return { ...rest, text: JSON.stringify(mediaResponse(identity, output, files)) };
}

/** An answer lives as long as its first file, or from now if it has none. */
function lifeOf({ clock }: CallContext, files: readonly StoredFile[] = []) {
  const createdAt = files[0]?.createdAt ?? clock.now();
  return { createdAt, expiresAt: createdAt + dayMs };
}

/** Where generated files go. */
interface FileSink<T> {
  store(body: Buffer | AsyncIterable<Buffer>, about: JsonObject, signal: AbortSignal): Promise<T>;
  discard(files: readonly T[]): Promise<void>;
}

async function generate<T>(call: CallContext, parsed: ParsedCall, sink: FileSink<T>, memory: ByteShare) {
  const { upstreams, files } = call;
  const { input, ask, isResumable } = await prepare(call, parsed, memory);
  // Otherwise the provider would be paid for what cannot be stored.
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
    const named = parsed.input?.at === "input" ? inInput(error) : error;
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

/** For an answer that carries the bytes itself. */
function inlineImages(
  { request: { n } }: CallContext,
  memory: ByteShare,
): FileSink<{ readonly b64_json: string; readonly about: JsonObject }> {
  let takenBytes = 0;
  let neededBytes = 0;
  const take = (bytes: number) => {
    if (bytes <= takenBytes) return;
    if (!memory.take(bytes - takenBytes)) throw noMemory();
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
