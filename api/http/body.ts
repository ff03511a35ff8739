import express, { type Request, type Response } from "express";
import { invalidValue, requestTooLarge, type ServiceError, toServiceError, unsupportedMediaType } from "#errors";
import { proceed } from "./continue.ts";

/** A JSON body as it came, checked to be JSON once. */
export interface JsonBody {
  readonly text: string;
  readonly bytes: number;
  readonly value: unknown;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a JSON body whatever its declared type: curl without a header is welcome. It runs after authentication, so that
 * strangers cannot make us read; gzip, deflate and br are taken, and the limit is of the inflated bytes.
 */
export function createBodyReader(limitBytes: number) {
  const read = express.raw({ type: () => true, limit: limitBytes, inflate: true });
  return async (req: Request, res: Response): Promise<JsonBody> => {
    proceed(req, res);
    await new Promise<void>((resolve, reject) => {
      read(req, res, (error?: unknown) => (error === undefined ? resolve() : reject(bodyError(error, limitBytes))));
    });
    const bytes: Buffer = Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0);
    if (bytes.length === 0) throw invalidValue(undefined, "The body is empty; JSON is expected.");
    let text: string;
    try {
      text = utf8.decode(bytes);
    } catch {
      throw invalidValue(undefined, "The body is not valid UTF-8.");
    }
    try {
      return { text, bytes: bytes.length, value: JSON.parse(text) };
    } catch (error) {
      // V8 quotes a piece of the body in its message: the position is enough.
      const position = /position (\d+)/.exec((error as Error).message)?.[1];
      throw invalidValue(undefined, `The body is not valid JSON${position ? ` (at position ${position})` : ""}.`);
    }
  };
}

/** What express's own parsers throw, as errors of ours. */
function bodyError(error: unknown, limitBytes: number): ServiceError {
  const type = typeof error === "object" && error !== null && "type" in error ? error.type : undefined;
  switch (type) {
    case "entity.too.large":
      return requestTooLarge(limitBytes);
    case "encoding.unsupported":
    case "charset.unsupported":
      return unsupportedMediaType("This content encoding is not supported; send gzip, deflate, br or none.");
    case "request.aborted":
    case "request.size.invalid":
    case "entity.parse.failed":
      return invalidValue(undefined, "The body did not arrive whole, or is not valid JSON.");
    default:
      return error instanceof Error && "status" in error && error.status === 400
        ? invalidValue(undefined, "The body could not be read.")
        : toServiceError(error);
  }
}
