import { type BitWriter, createBitWriter } from "./bits.ts";
import { writeChroma, writeLuma } from "./cavlc.ts";

/** A macroblock (16 x 16) of four flat squares: `luma` +- `across` (left, right) +- `down` (top, bottom). */
export interface Tile {
  readonly luma: number;
  readonly across: number;
  readonly down: number;
  readonly cb: number;
  readonly cr: number;
}

/** 256 of luma, 64 of Cb, 64 of Cr: as they are, 384 bytes. */
export type Samples = Uint8Array;

export interface Encoder {
  /** Sequence and picture parameter sets, as NAL units. */
  readonly sps: Buffer;
  readonly pps: Buffer;
  /** Rows of tiles from the top, then rows of samples: tiles are written as the difference to a tile before them. */
  key(tiles: readonly (readonly Tile[])[], samples: readonly (readonly Samples[])[], turn: Turn): Promise<Buffer>;
  /** What changes since the picture before, by the macroblock's number; the rest is skipped. */
  change(changed: ReadonlyMap<number, Samples>): Buffer;
}

/** Awaited after so many macroblocks: lets others have the event loop now and then. */
export type Turn = (macroblocks: number) => Promise<void>;

interface Format {
  /** In pixels, even. */
  readonly width: number;
  readonly height: number;
  readonly framesPerSecond: number;
}

export const macroblocks = (pixels: number) => Math.ceil(pixels / 16);

/**
 * H.264 Constrained Baseline, as much of it as a gradient with something moving needs: key pictures of flat squares, their
 * edges smoothed by the decoder, and pictures in between that skip what stays as it is. Pictures come in the order they
 * are shown. https://www.itu.int/rec/T-REC-H.264
 *
 * The quantizers are chosen so that one step of a coefficient is one step of a sample: nothing is lost, and what the
 * decoder has is known without decoding.
 */
export function createEncoder(format: Format): Encoder {
  const width = macroblocks(format.width);
  const height = macroblocks(format.height);
  let frame = 0;
  let keys = 0;

  return {
    sps: nal(0x67, sequence(format)),
    pps: nal(0x68, pictures()),
    async key(tiles, samples, turn) {
      const into = createBitWriter();
      into.ue(0); // first macroblock
      into.ue(7); // all slices are I
      into.ue(0); // picture parameter set
      frame = 0;
      into.bits(frame, frameBits);
      into.ue(keys++ % 2); // id: differs from the one before
      into.bits(0b00, 2); // earlier pictures may be shown; not for long term
      into.se(0); // quantizer as in the parameter set
      for (const [y, row] of tiles.entries()) {
        for (const [x, tile] of row.entries()) writeTile(into, tile, row[x - 1], tiles[y - 1]?.[x]);
        await turn(row.length);
      }
      for (const each of samples.flat()) writeSamples(into, each, 25);
      return nal(0x65, into);
    },
    change(changed) {
      const into = createBitWriter();
      into.ue(0);
      into.ue(5); // all slices are P
      into.ue(0);
      frame = (frame + 1) % 2 ** frameBits;
      into.bits(frame, frameBits);
      into.bits(0b000, 3); // as many references as usual, in their order; each picture is one
      into.se(0);
      let next = 0;
      for (const [at, samples] of [...changed].toSorted(([a], [b]) => a - b)) {
        into.ue(at - next); // so many are skipped
        writeSamples(into, samples, 5 + 25);
        next = at + 1;
      }
      if (next < width * height) into.ue(width * height - next);
      return nal(0x41, into);
    },
  };
}

const frameBits = 8;

/**
 * Intra 16x16, of which only DC coefficients are coded. The tile to the left is continued, row by row; in the first
 * column the one above, column by column; the very first starts from 128.
 */
function writeTile(into: BitWriter, tile: Tile, left: Tile | undefined, above: Tile | undefined): void {
  const [mode, chromaMode] = left ? [1, 1] : above ? [0, 2] : [2, 0];
  const before = left
    ? { luma: left.luma - left.across, across: 0, down: left.down }
    : above
      ? { luma: above.luma - above.down, across: above.across, down: 0 }
      : { luma: 128, across: 0, down: 0 };
  const { cb, cr } = left ?? above ?? { cb: 128, cr: 128 };
  const hasChroma = tile.cb !== cb || tile.cr !== cr;
  into.ue(1 + mode + (hasChroma ? 4 : 0));
  into.ue(chromaMode);
  into.se(0); // quantizer as before
  writeLuma(into, [tile.luma - before.luma, tile.across - before.across, tile.down - before.down]);
  if (!hasChroma) return;
  writeChroma(into, tile.cb - cb);
  writeChroma(into, tile.cr - cr);
}

/** I_PCM. */
function writeSamples(into: BitWriter, samples: Samples, type: number): void {
  into.ue(type);
  into.align();
  into.raw(samples);
}

/** Level, most macroblocks in a picture, and in a second (table A-1). */
const levels = [
  [30, 1_620, 40_500],
  [31, 3_600, 108_000],
  [32, 5_120, 216_000],
  [40, 8_192, 245_760],
] as const;
const highest = 50;

function sequence({ width, height, framesPerSecond }: Format): BitWriter {
  const [across, down] = [macroblocks(width), macroblocks(height)];
  const size = across * down;
  const level = levels.find(
    ([, most, perSecond]) =>
      size <= most && size * framesPerSecond <= perSecond && Math.max(across, down) ** 2 <= 8 * most,
  );
  const into = createBitWriter();
  into.bits(66, 8); // Baseline,
  into.bits(0b1100_0000, 8); // Constrained
  into.bits(level?.[0] ?? highest, 8);
  into.ue(0); // id
  into.ue(frameBits - 4);
  into.ue(2); // pictures are shown in the order they come
  into.ue(1); // one reference
  into.bits(0, 1);
  into.ue(across - 1);
  into.ue(down - 1);
  into.bits(0b11, 2); // frames, not fields
  const [right, bottom] = [across * 16 - width, down * 16 - height];
  into.bits(right + bottom > 0 ? 1 : 0, 1);
  if (right + bottom > 0) for (const cut of [0, right / 2, 0, bottom / 2]) into.ue(cut);
  into.bits(0b1_0_0, 3); // usability information: no aspect ratio, no overscan,
  into.bits(1, 1); // but the colors:
  into.bits(0b101_0_1, 5); // no format, limited range,
  for (let each = 0; each < 3; each++) into.bits(1, 8); // BT.709
  into.bits(0b0_1, 2); // no place of chroma, but the time:
  for (const number of [1, framesPerSecond * 2]) {
    into.bits(number >>> 16, 16);
    into.bits(number, 16);
  }
  into.bits(0b1_0_0_0_0, 5); // fixed; nothing more
  return into;
}

/** Luma quantizer 28 and chroma 22: the scales 16 and 8, at which a step of a DC coefficient is one of a sample (8.5.10). */
function pictures(): BitWriter {
  const into = createBitWriter();
  into.ue(0);
  into.ue(0);
  into.bits(0b00, 2); // CAVLC
  into.ue(0);
  into.ue(0);
  into.ue(0);
  into.bits(0b000, 3); // no weights
  into.se(28 - 26);
  into.se(0);
  into.se(22 - 28);
  into.bits(0b000, 3);
  return into;
}

/** A NAL unit: no three bytes in it may look like a start code. */
function nal(header: number, payload: BitWriter): Buffer {
  const raw = payload.end();
  const escaped = Buffer.allocUnsafe(1 + Math.ceil(raw.length * 1.5));
  escaped[0] = header;
  let length = 1;
  let zeros = 0;
  for (const byte of raw) {
    if (zeros === 2 && byte <= 3) {
      escaped[length++] = 3;
      zeros = 0;
    }
    escaped[length++] = byte;
    zeros = byte === 0 ? zeros + 1 : 0;
  }
  return Buffer.from(escaped.subarray(0, length));
}
