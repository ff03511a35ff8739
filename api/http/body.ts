import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import type { Request, Response } from "express";
import { invalidValue, noCapacity, requestTimeout, requestTooLarge, unsupportedMediaType } from "#errors";
import type { ByteBudget, ByteShare } from "#platform/byte-budget";
import type { Clock } from "#platform/clock";
import { passing } from "#platform/passing";
import { proceed } from "./continue.ts";

/** A JSON body as it came, checked to be JSON once. */
export interface JsonBody {
  readonly text: string;
  readonly bytes: number;
  readonly value: unknown;
  /** Drops the text and the value, and returns their memory to the budget. Doing it again changes nothing. */
  release(): void;
}

/** Whose part of the budget a body takes. Without a key there is one part for all, for short bodies without an encoding. */
export type BodyOwner = { readonly account: string } | "anonymous";

export type BodyReader = (req: Request, res: Response, owner: BodyOwner) => Promise<JsonBody>;

/** From the first wait to the last byte. */
export const bodyTimeoutMs = 60_000;
const anonymousLimitBytes = 1024 * 1024;
const firstBytes = 16 * 1024;
/** Of the window and the output of an inflater. */
const inflaterBytes = 64 * 1024;

const inflaters = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress };
type Encoding = keyof typeof inflaters;
const isEncoding = (name: string): name is Encoding => Object.hasOwn(inflaters, name);

const utf8 = new TextDecoder("utf-8", { fatal: true });
const incomplete = () => invalidValue(undefined, "The body did not arrive whole, or is not what its encoding says.");

/**
 * Reads a JSON body whatever its declared type: curl without a header is welcome. gzip, deflate and br are taken from
 * callers with a key; the limit is of the inflated bytes. What is held in memory, inflated bytes included, is charged to
 * the budget as it grows: a declared length costs nothing before it arrives. Throws 400, 408, 413, 415, 503.
 */
export function createBodyReader(deps: { limitBytes: number; budget: ByteBudget; clock: Clock }): BodyReader {
  return async (req, res, owner) => {
    const isAnonymous = owner === "anonymous";
    const limitBytes = isAnonymous ? Math.min(deps.limitBytes, anonymousLimitBytes) : deps.limitBytes;
    const encoding = encodingOf(req);
    if (isAnonymous && encoding)
      throw unsupportedMediaType("Without an API key a body is sent without a content encoding.", "content-encoding");
    const declared = req.headers["content-length"];
    const length = declared === undefined ? undefined : Number(declared);
    if (length !== undefined && length > limitBytes) throw requestTooLarge(limitBytes);
    const share = deps.budget.share(isAnonymous ? "" : owner.account);
    try {
      proceed(req, res);
      const bytes = await gather(req, { encoding, length, limitBytes, share, clock: deps.clock });
      const size = bytes.length;
      const { text, value } = parse(bytes);
      // A string has two bytes a character unless all are ASCII; the value holds its strings once more.
      charge(share, 2 * text.length * (text.length === size ? 1 : 2));
      return held(text, value, size, share);
    } catch (error) {
      share.resize(0);
      throw error;
    }
  };
}

function encodingOf(req: Request): Encoding | undefined {
  const name = (req.headers["content-encoding"] ?? "identity").trim().toLowerCase();
  if (name === "identity" || name === "") return undefined;
  if (isEncoding(name)) return name;
  throw unsupportedMediaType("This content encoding is not supported; send gzip, deflate, br or none.");
}

function charge(share: ByteShare, bytes: number): void {
  if (!share.resize(bytes)) throw noCapacity("Too many large requests are being read right now.", 2);
}

/** Returns the memory now: the collector may come long after. */
const free = ({ buffer }: Uint8Array<ArrayBuffer>): void => void buffer.transfer(0);

interface Gathering {
  readonly encoding: Encoding | undefined;
  readonly length: number | undefined;
  readonly limitBytes: number;
  readonly share: ByteShare;
  readonly clock: Clock;
}

async function gather(req: Request, gathering: Gathering): Promise<Uint8Array<ArrayBuffer>> {
  const { encoding, length, limitBytes, share, clock } = gathering;
  if (req.destroyed) throw incomplete();
  const inflater = encoding && inflaters[encoding]();
  const source: Readable = inflater ?? req;
  const mostBytes = inflater ? limitBytes : (length ?? limitBytes);
  let bytes = new Uint8Array(0);
  let size = 0;
  let compressed = 0;
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();

  function grow(needed: number): void {
    const capacity = Math.min(mostBytes, Math.max(needed, 2 * bytes.length, Math.min(mostBytes, firstBytes)));
    // A Brotli decoder keeps what it put out, up to 16 MB of it.
    const decoder = inflater ? inflaterBytes + (encoding === "br" ? capacity : 0) : 0;
    charge(share, capacity + decoder);
    bytes = new Uint8Array(bytes.buffer.transfer(capacity));
  }
  function onData(chunk: Buffer): void {
    passing(chunk.length);
    try {
      if (size + chunk.length > limitBytes) throw requestTooLarge(limitBytes);
      if (size + chunk.length > bytes.length) grow(size + chunk.length);
      bytes.set(chunk, size);
      size += chunk.length;
    } catch (error) {
      source.pause();
      reject(error);
    }
  }
  function onCompressed(chunk: Buffer): void {
    compressed += chunk.length;
    if (compressed > limitBytes) reject(requestTooLarge(limitBytes));
  }
  const onBroken = () => reject(incomplete());
  // A request that came whole closes before its last bytes are inflated.
  const onClose = () => {
    if (!req.complete) onBroken();
  };

  const cancel = clock.after(bodyTimeoutMs, () => reject(requestTimeout()));
  source.on("data", onData).once("end", resolve);
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
    source.off("data", onData).off("end", resolve);
    req.off("error", onBroken).off("close", onClose).off("data", onCompressed);
    if (inflater) {
      req.unpipe(inflater);
      inflater.destroy();
    }
    req.pause();
  }
}

function parse(bytes: Uint8Array<ArrayBuffer>): { readonly text: string; readonly value: unknown } {
  if (bytes.length === 0) throw invalidValue(undefined, "The body is empty; JSON is expected.");
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw invalidValue(undefined, "The body is not valid UTF-8.");
  } finally {
    free(bytes);
  }
  try {
    return { text, value: JSON.parse(text) };
  } catch (error) {
    // V8 quotes a piece of the body in its message: the position is enough.
    const position = /position (\d+)/.exec((error as Error).message)?.[1];
    throw invalidValue(undefined, `The body is not valid JSON${position ? ` (at position ${position})` : ""}.`);
  }
}

function held(text: string, value: unknown, bytes: number, share: ByteShare): JsonBody {
  let kept: { readonly text: string; readonly value: unknown } | undefined = { text, value };
  return {
    bytes,
    get text() {
      return kept?.text ?? "";
    },
    get value() {
      return kept?.value;
    },
    release() {
      kept = undefined;
      share.resize(0);
    },
  };
}
