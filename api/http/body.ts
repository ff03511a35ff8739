import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Request, Response } from "express";
import { invalidValue, noCapacity, requestTimeout, requestTooLarge, unsupportedMediaType } from "#errors";
import { createJsonScan, type JsonLimits, type JsonScan, jsonLimits, unlimitedJson } from "#formats";
import type { ByteBudget, ByteShare } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { nextTurnIfLarge } from "#platform/concurrency/next-turn";

export type JsonBody = ReturnType<typeof createJsonBody>;

/**
 * The owner of the budget share that a body takes. All anonymous callers have one share, for short bodies without an
 * encoding.
 */
export type BodyOwner = { readonly account: string } | "anonymous";

/** `limits` replaces the default JSON limits of callers with a key. */
export type BodyReader = (req: Request, res: Response, owner: BodyOwner, limits?: JsonLimits) => Promise<JsonBody>;

/** Time from the start of reading to the last byte. */
export const bodyTimeoutMs = 60_000;
/** Limit of one body without a key. */
const anonymousLimitBytes = 128 * 1024;
const anonymousLimits: JsonLimits = { ...jsonLimits, values: 10_000 };
/** Fraction of the budget for all bodies without a key together. */
const anonymousPart = 1 / 8;
const firstBytes = 16 * 1024;
/** Memory of an inflater's window and output. */
const inflaterBytes = 64 * 1024;

const inflaters = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress };
type Encoding = keyof typeof inflaters;
const isEncoding = (name: string): name is Encoding => Object.hasOwn(inflaters, name);

const utf8 = new TextDecoder("utf-8", { fatal: true });
const incomplete = () => invalidValue(undefined, "The body is incomplete, or does not match its content encoding.");

/**
 * Reads a JSON body of any declared type. Callers with a key may send gzip, deflate or br; the limits apply to the inflated
 * bytes. Memory is taken from the budget as bytes arrive, inflated ones included, so a declared length costs nothing by
 * itself. Memory for the parsed value is taken before parsing. Throws 400, 408, 413, 415, 503.
 */
export function createBodyReader(deps: { limitBytes: number; budget: ByteBudget; clock: Clock }): BodyReader {
  return async (req, res, owner, limits = jsonLimits) => {
    const isAnonymous = owner === "anonymous";
    const limitBytes = isAnonymous ? Math.min(deps.limitBytes, anonymousLimitBytes) : deps.limitBytes;
    const encoding = encodingOf(req);
    if (isAnonymous && encoding)
      throw unsupportedMediaType("A body without an API key must have no content encoding.", "content-encoding");
    const declared = req.headers["content-length"];
    const length = declared === undefined ? undefined : Number(declared);
    if (length !== undefined && length > limitBytes) throw requestTooLarge(limitBytes);
    const { budget, clock } = deps;
    const share = isAnonymous ? budget.share("", anonymousPart * budget.limitBytes) : budget.share(owner.account);
    const scan = createJsonScan(isAnonymous ? anonymousLimits : limits);
    try {
      sendContinue(req, res);
      const bytes = await gather(req, { encoding, length, limitBytes, scan, share, clock });
      const size = bytes.length;
      const text = decode(bytes);
      // V8 stores two bytes for each character unless all are ASCII. The value holds the strings a second time.
      reserve(share, 2 * text.length * (text.length === size ? 1 : 2) + scan.heapBytes);
      await nextTurnIfLarge(size);
      const value = parse(text);
      await nextTurnIfLarge(size);
      return createJsonBody(text, value, size, share);
    } catch (error) {
      share.resize(0);
      throw error;
    }
  };
}

const continued = new WeakSet<Request>();

/** Answers `Expect: 100-continue`, once per request. Must be called before a body is read. */
export function sendContinue(req: Request, res: Response): void {
  if (continued.has(req) || res.headersSent) return;
  continued.add(req);
  if (/^100-continue$/i.test(req.headers.expect?.trim() ?? "")) res.writeContinue();
}

function encodingOf(req: Request): Encoding | undefined {
  const name = (req.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (name === "identity" || name === "") return undefined;
  if (isEncoding(name)) return name;
  throw unsupportedMediaType("This content encoding is not supported; send gzip, deflate, br or none.");
}

function reserve(share: ByteShare, bytes: number): void {
  if (!share.resize(bytes)) throw tooManyLarge();
}

const tooManyLarge = () => noCapacity("Too many large requests are being read right now.", 2);
/** The text and the value take two bytes each per character. */
const copies = 4;

/** Returns the memory at once, because the garbage collector may run much later. */
const free = ({ buffer }: Uint8Array<ArrayBuffer>): void => void buffer.transfer(0);

interface Gathering {
  readonly encoding: Encoding | undefined;
  readonly length: number | undefined;
  readonly limitBytes: number;
  readonly scan: JsonScan;
  readonly share: ByteShare;
  readonly clock: Clock;
}

async function gather(req: Request, gathering: Gathering): Promise<Uint8Array<ArrayBuffer>> {
  const { encoding, length, limitBytes, scan, share, clock } = gathering;
  if (req.destroyed) throw incomplete();
  const inflater = encoding && inflaters[encoding]();
  const source: Readable = inflater ?? req;
  const maxBytes = inflater ? limitBytes : (length ?? limitBytes);
  let bytes = new Uint8Array(0);
  let size = 0;
  let compressed = 0;
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();

  function grow(needed: number): void {
    const capacity = Math.min(maxBytes, Math.max(needed, 2 * bytes.length, Math.min(maxBytes, firstBytes)));
    // A Brotli decoder holds up to 16 MB of its own output.
    const decoder = inflater ? inflaterBytes + (encoding === "br" ? capacity : 0) : 0;
    reserve(share, capacity + decoder);
    bytes = new Uint8Array(bytes.buffer.transfer(capacity));
  }
  function add(chunk: Buffer): void {
    if (size + chunk.length > limitBytes) throw requestTooLarge(limitBytes);
    scan.push(chunk);
    if (size + chunk.length > bytes.length) grow(size + chunk.length);
    bytes.set(chunk, size);
    size += chunk.length;
  }
  // A flowing stream would read up to 2 MB in one turn of the event loop, and so would those of all other callers.
  function onReadable(): void {
    try {
      for (let chunk = read(); chunk !== null; chunk = read()) add(chunk);
    } catch (error) {
      source.off("readable", onReadable);
      reject(error);
    }
  }
  const read = () => source.read() as Buffer | null;
  function onCompressed(chunk: Buffer): void {
    compressed += chunk.length;
    if (compressed > limitBytes) reject(requestTooLarge(limitBytes));
  }
  const onBroken = () => reject(incomplete());
  // A complete request closes before its last bytes are inflated.
  const onClose = () => {
    if (!req.complete) onBroken();
  };

  const cancel = clock.after(bodyTimeoutMs, () => reject(requestTimeout()));
  source.on("readable", onReadable).once("end", resolve);
  req.once("error", onBroken).once("close", onClose);
  if (inflater) req.on("data", onCompressed).pipe(inflater).once("error", onBroken);
  try {
    await ended;
    return bytes.subarray(0, size);
  } catch (error) {
    free(bytes);
    throw error;
  } finally {
    cancel();
    source.off("readable", onReadable).off("end", resolve);
    req.off("error", onBroken).off("close", onClose).off("data", onCompressed);
    if (inflater) {
      req.unpipe(inflater);
      inflater.destroy();
    }
    req.pause();
  }
}

function decode(bytes: Uint8Array<ArrayBuffer>): string {
  if (bytes.length === 0) throw invalidValue(undefined, "The body is empty; it must be JSON.");
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidValue(undefined, "The body is not valid UTF-8.");
  } finally {
    free(bytes);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // V8's message quotes the body, so only the position is used.
    const position = /position (\d+)/.exec((error as Error).message)?.[1];
    throw invalidValue(undefined, `The body is not valid JSON${position ? ` (at position ${position})` : ""}.`);
  }
}

/** A JSON body: its text and its parsed value. */
function createJsonBody(text: string, value: unknown, bytes: number, share: ByteShare) {
  let content: { readonly text: string; readonly value: unknown } | undefined = { text, value };
  let size = bytes;
  return {
    get bytes(): number {
      return size;
    },
    get text(): string {
      return content?.text ?? "";
    },
    get value(): unknown {
      return content?.value;
    },
    /** Reserves memory for a text of this size and its parsed value, until `replace` or `release`. Throws 503. */
    reserve(textBytes: number): void {
      if (!share.take(copies * textBytes)) throw tooManyLarge();
    },
    /** Replaces the body. Throws 503. */
    replace(newText: string, newValue: unknown): void {
      const bytes = Buffer.from(newText);
      size = bytes.length;
      content = { text: newText, value: newValue };
      const scan = createJsonScan(unlimitedJson);
      scan.push(bytes);
      reserve(share, copies * size + scan.heapBytes);
    },
    /** Drops the text, but keeps its memory for what is made of the value. */
    dropText(): void {
      content = content && { ...content, text: "" };
    },
    /** Drops the text and the value, and returns their memory to the budget. Idempotent. */
    release(): void {
      content = undefined;
      share.resize(0);
    },
  };
}
