import type { Usage } from "#catalog";
import { invalidValue, noCapacity, ServiceError, upstreamError } from "#errors";
import { imagesCodec, mediaCodec, type ParsedCall } from "#formats";
import type { ByteShare } from "#platform/byte-budget";
import { type GeneratedFile, imageResponse, mediaResponse } from "../conversion/index.ts";
import type { GenerationCall, JsonObject } from "../providers/index.ts";
import type { Answer, Attempt } from "../run-call.ts";

const lifeMs = 24 * 3_600_000;
/** A minute of the best video that providers sell has some hundred megabytes. */
const fileLimitBytes = 512 * 1024 * 1024;
const inlineImageLimitBytes = 64 * 1024 * 1024;
/** What most images have: there must be memory for as much before a provider is asked. */
const usualImageBytes = 2 * 1024 * 1024;
/** An image, its base64 and the answer's text are not held at once, but two of them are. */
const inlineImageCopies = 3;

/** A call for images on an upstream that makes them. */
export async function image(attempt: Attempt, memory: ByteShare): Promise<Answer> {
  const call = imagesCodec.parse(attempt.request, 0);
  if (attempt.request["response_format"] === "b64_json") {
    const { made, ...rest } = await generate(attempt, call, inline(attempt, memory), memory);
    return { ...rest, text: JSON.stringify(imageResponse(lifeOf(attempt), made)) };
  }
  const { made, ...rest } = await generate(attempt, call, stored(attempt), memory);
  const images = made.map(({ url, expiresAt, about }) => ({ url, expiresAt, about }));
  return { ...rest, text: JSON.stringify(imageResponse(lifeOf(attempt, made), images)) };
}

/** Any other call that makes files, or reads one. */
export async function media(attempt: Attempt, memory: ByteShare): Promise<Answer> {
  const { requestId, model } = attempt.payload;
  const call = mediaCodec.parse(attempt.request, 0);
  const { made, output, ...rest } = await generate(attempt, call, stored(attempt), memory);
  const ours = { id: requestId.replace("req_", "gen_"), model, ...lifeOf(attempt, made) };
  return { ...rest, text: JSON.stringify(mediaResponse(ours, output, made)) };
}

/** Of an answer: that of its first file, or of its own if it has none. */
function lifeOf({ clock }: Attempt, made: readonly Kept[] = []) {
  const createdAt = made[0]?.createdAt ?? clock.now();
  return { createdAt, expiresAt: createdAt + lifeMs };
}

/** Where what an upstream makes is kept. */
interface Keeping<Made> {
  keep(body: Buffer | AsyncIterable<Buffer>, about: JsonObject, signal: AbortSignal): Promise<Made>;
  drop(made: readonly Made[]): Promise<void>;
}

interface Result<Made> {
  readonly made: readonly Made[];
  readonly output: JsonObject;
  readonly usage: Usage;
  readonly estimated: false;
  readonly input: JsonObject;
}

async function generate<Made>(
  attempt: Attempt,
  call: ParsedCall,
  keeping: Keeping<Made>,
  memory: ByteShare,
): Promise<Result<Made>> {
  const { payload, catalog, model, upstreams, signal, disconnected, progress, log, files, job } = attempt;
  // With its defaults: what is priced is what is asked for.
  const input = call.input ? catalog.checkInput(model, call.input) : {};
  const task = model.task;
  if (!task) throw new TypeError(`the model '${model.id}' makes no files`);
  const uploads = await files.uploads.resolve(payload.account, call.uploads, signal);
  // The provider would be paid for what could not be kept.
  await files.ping().catch((error: unknown) => {
    throw noCapacity("Storage for generated files is away; nothing was charged.", 5, error);
  });
  let made: Made[] = [];
  const remember: GenerationCall["remember"] = async (id) => {
    await files.generated.storeProviderJob(payload.requestId, { upstream: progress.upstream ?? "", job: id });
    progress.job = id;
  };
  // Only the upstream that has the job can go on with it.
  const ways = job ? model.upstreams.filter(({ upstream }) => upstream === job.upstream) : model.upstreams;
  try {
    const { output, usage } = await upstreams.once(
      { ...model, upstreams: ways },
      signal,
      progress,
      async ({ provider, model }, signal) => {
        await keeping.drop(made);
        made = [];
        // Nobody waits for what a provider would have to begin.
        if (!job) disconnected.throwIfAborted();
        const keep: GenerationCall["store"] = async (body, about = {}) => {
          made.push(await keeping.keep(body, about, signal));
        };
        const hold = (bytes: number) => {
          if (!memory.take(bytes)) throw noMemory();
        };
        const asked = { task, model, input, uploads, job: job?.job };
        return provider.generate({ ...asked, remember, store: keep, hold, signal, disconnected, log });
      },
      log,
    );
    if (Object.values(usage).every((count) => !count)) throw upstreamError("The upstream made nothing.");
    return { made, output, usage, estimated: false, input };
  } catch (error) {
    await keeping.drop(made);
    throw call.input?.at === "input" ? inInput(error) : error;
  }
}

/** Providers name their own fields, which here stand in `input`. */
function inInput(error: unknown): unknown {
  if (!(error instanceof ServiceError) || error.code !== "invalid_value" || error.param === undefined) return error;
  return /^input\b/.test(error.param) ? error : invalidValue(`input.${error.param}`, error.message);
}

type Kept = GeneratedFile & { readonly id: string; readonly createdAt: number };

const stored = ({ files, payload }: Attempt): Keeping<Kept> => ({
  async keep(body, about, signal) {
    const { account, requestId, publicUrl = "" } = payload;
    const file = await files.generated.store({ account, requestId, body, limitBytes: fileLimitBytes, signal });
    return { ...file, url: `${publicUrl}/media/${file.id}`, about };
  },
  async drop(made) {
    if (made.length > 0) await files.generated.delete(made.map(({ id }) => id));
  },
});

const noMemory = () => noCapacity("There is no memory for an answer of this size right now; nothing was charged.", 2);

/** For an answer that carries the bytes itself. */
function inline(
  { request }: Attempt,
  memory: ByteShare,
): Keeping<{ readonly b64_json: string; readonly about: JsonObject }> {
  const { n } = request;
  let takenBytes = 0;
  let neededBytes = 0;
  const take = (bytes: number) => {
    if (bytes <= takenBytes) return;
    if (!memory.take(bytes - takenBytes)) throw noMemory();
    takenBytes = bytes;
  };
  take(inlineImageCopies * usualImageBytes * (typeof n === "number" ? n : 1));
  return {
    async keep(body, about) {
      const pieces: Buffer[] = [];
      let bytes = 0;
      for await (const piece of Buffer.isBuffer(body) ? [body] : body) {
        bytes += piece.length;
        if (bytes > inlineImageLimitBytes) throw upstreamError("The upstream's image is too large.");
        neededBytes += inlineImageCopies * piece.length;
        take(neededBytes);
        pieces.push(piece);
      }
      return { b64_json: Buffer.concat(pieces).toString("base64"), about };
    },
    async drop(made) {
      for (const { b64_json } of made) neededBytes -= inlineImageCopies * Buffer.byteLength(b64_json, "base64");
    },
  };
}
