import { invalidValue, requestTooLarge, ServiceError, toServiceError } from "#errors";
import type { Uses } from "#platform/uses";
import { detect, headBytes, unsupportedFile } from "./media-types.ts";
import { expiryGraceMs, newRecord, type StoredUpload, type UploadRequest, uploadKey } from "./records.ts";
import type { Upload, UploadDeps } from "./upload-view.ts";

type Deps = UploadDeps & Uses<"log">;

/** Maximum time from the start of a raw or form upload to its last byte. */
const receiveTimeoutMs = 20 * 60_000;
/** An upload expires if its process has not postponed that for this long. */
const silentMs = 120_000;
const postponeEveryMs = 30_000;

/** Uploads whose bytes pass through this process: raw bodies and forms. */
export function createReceiving({ records, storage, lifecycle, toUpload, clock, log }: Deps) {
  function receive(record: StoredUpload, maxBytes: number) {
    const { _id: id } = record;
    let ended = false;
    const postpone = () =>
      records
        .postpone(id, new Date(clock.now() + silentMs))
        .catch((error: unknown) => log.warn({ err: error, upload: id }, "an upload's expiry was not postponed"));
    const stopPostponing = clock.every(postponeEveryMs, () => void postpone());

    /**
     * Detects the type, streams to storage at its pace, then charges and activates. A failure leaves no object, record
     * or hold, and ends the body (`return`) immediately. Throws 400 if the body's length differs from `bytes`, 413,
     * 415, 503.
     */
    async function store({ bytes, body }: { bytes: number; body: AsyncIterable<Buffer> }): Promise<Upload> {
      if (ended) throw new Error(`${id} was received already`);
      ended = true;
      const incoming = createIncoming(body, { bytes, deadline: record.pendingUntil.getTime(), clock });
      try {
        if (bytes > maxBytes) throw requestTooLarge(maxBytes);
        if (bytes === 0) throw invalidValue(undefined, "The file is empty.");
        const type = await detect(await incoming.head(headBytes));
        if (!type) throw unsupportedFile();
        await storage.send({ key: uploadKey(id), contentType: type.mime, bytes, chunks: incoming.all() });
        const active = await lifecycle.activate(record, type, bytes);
        if (!active) throw invalidValue(undefined, "The file did not arrive in time.");
        return await toUpload(active);
      } catch (error) {
        incoming.stop();
        const recheckAt = incoming.isSending() ? new Date(record.pendingUntil.getTime() + expiryGraceMs) : undefined;
        await lifecycle.fail(record, { status: "failed", error: toServiceError(error).code }, recheckAt);
        throw error;
      } finally {
        stopPostponing();
      }
    }

    /** Releases the hold and deletes the record. Does nothing after `store`. Never rejects. */
    async function cancel(): Promise<void> {
      if (ended) return;
      ended = true;
      stopPostponing();
      await lifecycle.fail(record, { status: "cancelled" });
    }

    return { id, store, cancel };
  }

  return {
    /**
     * Holds the cost of `maxBytes` and writes a pending record before a byte is read. Throws 402, 403, 429, 503. The
     * caller must end the upload with `store` or `cancel`.
     */
    async begin({ maxBytes, ...request }: UploadRequest & { maxBytes: number }) {
      const now = clock.now();
      const held = await lifecycle.hold(request, maxBytes, now + silentMs);
      const dueAt = new Date(now + silentMs);
      const record = { ...newRecord(request, { now, pendingMs: receiveTimeoutMs, bytes: maxBytes, held }), dueAt };
      try {
        await records.insert(record);
      } catch (error) {
        // If the insert fails, release the hold. The caller does not wait for that.
        void lifecycle.fail(record, { status: "failed", error: "no_capacity" });
        throw error;
      }
      return receive(record, maxBytes);
    },
  };
}

/** Reads an incoming body. Throws 400 if it breaks off, misses the deadline or has another length. */
function createIncoming(
  body: AsyncIterable<Buffer>,
  { bytes, deadline, clock }: Uses<"clock"> & { bytes: number; deadline: number },
) {
  const source = body[Symbol.asyncIterator]();
  let received = 0;
  let isSending = false;
  let first: Buffer = Buffer.alloc(0);

  const incomplete = (why: string) =>
    invalidValue(undefined, `The file did not arrive: ${why} after ${received} of ${bytes} bytes.`);

  async function next(): Promise<Buffer | undefined> {
    if (clock.now() >= deadline) throw incomplete("the time limit was reached");
    const { done, value } = await source.next().catch((error: unknown) => {
      throw error instanceof ServiceError ? error : incomplete("it broke off");
    });
    if (!done) received += value.length;
    else if (received < bytes) throw incomplete("it ended");
    if (received > bytes) throw invalidValue(undefined, `The file has more than the ${bytes} bytes announced.`);
    return done ? undefined : value;
  }

  return {
    /** Returns the first `wanted` bytes, or all bytes if there are fewer. */
    async head(wanted: number): Promise<Buffer> {
      while (first.length < Math.min(wanted, bytes)) {
        const chunk = await next();
        if (!chunk) break;
        first = Buffer.concat([first, chunk]);
      }
      return first;
    },
    /**
     * Yields everything, including the head. Each chunk is held until the next one or the end has arrived, so that
     * storage that checks the length never makes an object from another body.
     */
    async *all(): AsyncGenerator<Buffer> {
      isSending = true;
      let last = first;
      for (let chunk = await next(); chunk; chunk = await next()) {
        yield last;
        last = chunk;
      }
      yield last;
    },
    /**
     * Returns true if storage may have the object, or may yet create it: some servers (versitygw) store what has arrived
     * when a connection ends early.
     */
    isSending: () => isSending,
    stop() {
      // This is not awaited, because it may wait for a chunk that never comes.
      source.return?.().catch(() => undefined);
    },
  };
}
