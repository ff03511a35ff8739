import { crc32, deflateSync } from "node:zlib";
import { wavHeader } from "../../workers/providers/wav-header.ts";

/** Small files with the right first bytes and a known number of pages, pixels or seconds. */

export const pngChunk = (type: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(data.length);
  ends.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
};

/** A large image is valid only in its header: its rows would take megabytes. */
export function png(width = 1, height = 1): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width);
  header.writeUInt32BE(height, 4);
  header.writeUInt8(8, 8);
  const rows = deflateSync(Buffer.alloc(Math.min(10_000, (width + 1) * height)));
  const mark = Buffer.from("\x89PNG\r\n\x1a\n", "latin1");
  return Buffer.concat([mark, pngChunk("IHDR", header), pngChunk("IDAT", rows), pngChunk("IEND", Buffer.alloc(0))]);
}

/** 16 bits, one channel. */
export function wav(seconds: number, rate = 16_000): Buffer<ArrayBuffer> {
  const samples = Math.round(seconds * rate);
  return Buffer.concat([wavHeader(samples, rate), Buffer.alloc(2 * samples)]);
}

/** Frames of MPEG-1 layer 3 at 44,100 Hz and 128 kbit/s: 417 bytes each. */
export function mp3(seconds: number): Buffer {
  const frame = Buffer.alloc(417);
  Buffer.from([0xff, 0xfb, 0x90, 0x00]).copy(frame);
  return Buffer.concat(Array.from({ length: Math.ceil((seconds * 44_100) / 1_152) }, () => frame));
}

/** The first box of a video, without frames. */
export const mp4 = (bytes = 64): Buffer => {
  const film = Buffer.alloc(Math.max(bytes, 24));
  film.writeUInt32BE(24);
  film.write("ftypisom", 4, "latin1");
  return film;
};

interface PdfShape {
  /** Deflates the contents, as most software does. */
  readonly deflated?: boolean;
  /** Stores pages in deflated object streams, a feature of PDF 1.5. */
  readonly objectStreams?: boolean;
}

/** One page per text. */
export function pdf(texts: readonly string[], { deflated = true, objectStreams = false }: PdfShape = {}): Buffer {
  const pageIds = texts.map((_, n) => 10 + n * 2);
  const catalog = [1, "<</Type/Catalog/Pages 2 0 R>>"] as const;
  const tree = [
    2,
    `<</Type/Pages/Count ${texts.length}/Kids[${pageIds.map((id) => `${id} 0 R`).join(" ")}]/MediaBox[0 0 612 792]>>`,
  ] as const;
  const font = [3, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"] as const;
  const pages = pageIds.map(
    (id) => [id, `<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>/Contents ${id + 1} 0 R>>`] as const,
  );
  const objects = [catalog, tree, font, ...pages];
  const blocks: Buffer[] = [Buffer.from("%PDF-1.5\n%\xe2\xe3\xcf\xd3\n", "latin1")];
  const stream = (id: number, dictionary: string, content: Buffer, isPacked = true) => {
    const data = isPacked ? deflateSync(content) : content;
    const filter = isPacked ? "/Filter/FlateDecode" : "";
    blocks.push(Buffer.from(`${id} 0 obj<<${dictionary}${filter}/Length ${data.length}>>stream\n`, "latin1"));
    blocks.push(data, Buffer.from("\nendstream endobj\n", "latin1"));
  };
  if (objectStreams)
    for (let at = 0; at < objects.length; at += 100) {
      const some = objects.slice(at, at + 100);
      let offset = 0;
      const index = some.map(([id, body]) => {
        const entry = `${id} ${offset}`;
        offset += body.length + 1;
        return entry;
      });
      const first = `${index.join(" ")}\n`;
      const content = Buffer.from(first + some.map(([, body]) => body).join("\n"), "latin1");
      stream(100_000 + at, `/Type/ObjStm/N ${some.length}/First ${first.length}`, content);
    }
  else for (const [id, body] of objects) blocks.push(Buffer.from(`${id} 0 obj${body}endobj\n`, "latin1"));
  texts.forEach((text, n) => {
    const lines = text.match(/.{1,90}/g) ?? [];
    const shown = lines.map((line) => `(${line.replace(/[\\()]/g, "\\$&")}) Tj T*`).join("\n");
    stream((pageIds[n] ?? 0) + 1, "", Buffer.from(`BT /F1 11 Tf 50 750 Td 13 TL\n${shown}\nET`, "latin1"), deflated);
  });
  blocks.push(Buffer.from("trailer<</Root 1 0 R>>\n%%EOF\n", "latin1"));
  return Buffer.concat(blocks);
}

export const dataAddress = (type: string, bytes: Buffer): string => `data:${type};base64,${bytes.toString("base64")}`;
