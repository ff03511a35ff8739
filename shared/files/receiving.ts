import { invalidValue, requestTooLarge, toServiceError } from "#errors";
import { createIncoming } from "./incoming.ts";
import { detect, headBytes } from "./media-types.ts";
import { insert, newRecord, unsupportedFile } from "./new-upload.ts";
import type { StoredUpload } from "./records.ts";
import type { Receiving, Upload, UploadAsk, Uploads } from "./types.ts";
import type { UploadDeps } from "./upload-deps.ts";
import { uploadKey } from "./upload-view.ts";

/** From the beginning of a raw or form upload to its last byte. */
const receivingMs = 20 * 60_000;

/** Uploads whose bytes come through us: raw bodies and forms. */
export function createReceiving(deps: UploadDeps): Pick<Uploads, "begin"> {
  const { charges, storage, outcome, lives, show, clock } = deps;

  function receiving(record: StoredUpload, mostBytes: number): Receiving {
    const { _id: id } = record;
    let ended = false;

    async function store({ bytes, body }: Parameters<Receiving["store"]>[0]): Promise<Upload> {
      if (ended) throw new Error(`${id} was received already`);
      ended = true;
      const until = record.pendingUntil.getTime();
      const incoming = createIncoming(body, { bytes, until, clock });
      try {
        if (bytes > mostBytes) throw requestTooLarge(mostBytes);
        if (bytes === 0) throw invalidValue(undefined, "The file is empty.");
        const type = await detect(await incoming.head(headBytes));
        if (!type) throw unsupportedFile();
        await storage.send({ key: uploadKey(id), contentType: type.mime, bytes, chunks: incoming.all() });
        const active = await outcome.succeed(record, type, bytes);
        if (!active) throw invalidValue(undefined, "The file did not arrive in time.");
        return await show(active);
      } catch (error) {
        incoming.stop();
        const unsure = incoming.complete() ? record.dueAt : undefined;
        await outcome.fail(record, { status: "failed", error: toServiceError(error).code }, lives, unsure ?? undefined);
        throw error;
      }
    }

    async function drop(): Promise<void> {
      if (ended) return;
      ended = true;
      await outcome.fail(record, { status: "cancelled" }, lives);
    }

    return { id, store, drop };
  }

  async function begin({ mostBytes, ...ask }: UploadAsk & { readonly mostBytes: number }): Promise<Receiving> {
    const now = clock.now();
    const held = await charges.hold(ask, mostBytes, now + receivingMs);
    const record = newRecord(ask, { now, pendingMs: receivingMs, bytes: mostBytes, held });
    await insert(deps, record);
    return receiving(record, mostBytes);
  }

  return { begin };
}
