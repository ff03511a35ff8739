import { noCapacity } from "#errors";
import type { Files } from "#files";
import { compress, decompress } from "#platform/compression";

/** A compressed text. It is in object storage if `zstd` is missing. */
export interface PackedText {
  readonly zstd?: Buffer;
  readonly textBytes?: number;
}

/** Called before a text is read, to reserve memory for it. May throw. */
export type Reserve = (textBytes: number) => void;

/** Larger compressed texts go to object storage. */
const maxInlineBytes = 1024 * 1024;

/** The texts of a call: its answer, the output of a response that ended early, and the events of its stream. */
export type TextName = "answer" | "output" | "events";
const objectName = (requestId: string, name: TextName) => (name === "answer" ? requestId : `${requestId}.${name}`);

export function createPackedTexts(files: Pick<Files, "putAnswer" | "getAnswer" | "deleteAnswer">) {
  return {
    /** Throws `noCapacity` if a large text cannot be stored. */
    async pack(requestId: string, name: TextName, text: string): Promise<PackedText> {
      const zstd = await compress(text);
      const textBytes = Buffer.byteLength(text);
      if (zstd.length <= maxInlineBytes) return { zstd, textBytes };
      await files.putAnswer(objectName(requestId, name), zstd).catch((error: unknown) => {
        throw noCapacity("Storage for large responses is unavailable; nothing was charged.", 5, error);
      });
      return { textBytes };
    },
    async unpack(
      requestId: string,
      name: TextName,
      { zstd, textBytes }: PackedText,
      reserve?: Reserve,
    ): Promise<string> {
      reserve?.(textBytes ?? 0);
      return decompress(zstd ?? (await files.getAnswer(objectName(requestId, name))), textBytes);
    },
    async delete(requestId: string, name: TextName, { zstd }: PackedText): Promise<void> {
      if (!zstd) await files.deleteAnswer(objectName(requestId, name));
    },
  };
}
