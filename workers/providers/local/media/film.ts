import { setImmediate } from "node:timers/promises";
import { type Picture, pictureOf } from "./drawing.ts";
import { createEncoder, macroblocks, type Samples, type Tile, type Turn } from "./h264.ts";
import { encodeMp4 } from "./mp4.ts";

interface Film {
  readonly seed: number;
  /** In pixels, even. */
  readonly width: number;
  readonly height: number;
  /** Whole seconds. */
  readonly duration: number;
}

const framesPerSecond = 24;
/** A key picture so often: where a player can jump to. */
const keyFrames = 4 * framesPerSecond;
/** Macroblocks that are worked out before the event loop gets a turn. */
const turnMacroblocks = 512;

/** An MP4 file: a picture of the seed, and a bar at its foot that shows how much of the film has passed. */
export async function encodeFilm({ seed, width, height, duration }: Film, signal: AbortSignal): Promise<Buffer> {
  const [across, down] = [macroblocks(width), macroblocks(height)];
  const upper = Math.floor((height - barHeight) / 16);
  let sinceTurn = 0;
  const turn = async (count: number) => {
    sinceTurn += count;
    if (sinceTurn < turnMacroblocks) return;
    sinceTurn = 0;
    await setImmediate();
    signal.throwIfAborted();
  };
  const tiles = await tilesOf(pictureOf(seed, across * 2, down * 2), turn);
  const total = duration * framesPerSecond;
  const encoder = createEncoder({ width, height, framesPerSecond });
  const frames: { nal: Buffer; isKey: boolean }[] = [];
  let shown = 0;
  for (let index = 0; index < total; index++) {
    const end = Math.round((width * (index + 1)) / total);
    const samples = (x: number, y: number) => samplesOf(tiles[y]?.[x] as Tile, x, y, { end, top: height - barHeight });
    const isKey = index % keyFrames === 0;
    if (isKey) {
      const foot = tiles.slice(upper).map((row, y) => row.map((_, x) => samples(x, upper + y)));
      frames.push({ nal: await encoder.key(tiles.slice(0, upper), foot, turn), isKey });
    } else {
      const changed = new Map<number, Samples>();
      for (let x = Math.floor(shown / 16); x * 16 < end && end > shown; x++)
        for (let y = upper; y < down; y++) changed.set(y * across + x, samples(x, y));
      frames.push({ nal: encoder.change(changed), isKey });
    }
    shown = end;
    await turn(across);
  }
  return encodeMp4({ width, height, framesPerSecond, sps: encoder.sps, pps: encoder.pps, frames });
}

const barHeight = 16;

/** Of a picture with one pixel for each quarter of a tile. */
async function tilesOf(picture: Picture, turn: Turn): Promise<readonly (readonly Tile[])[]> {
  const tiles: Tile[][] = [];
  const [upper, lower] = [new Uint8Array(picture.width * 3), new Uint8Array(picture.width * 3)];
  for (let y = 0; y < picture.height; y += 2) {
    picture.row(y, upper);
    picture.row(y + 1, lower);
    const row: Tile[] = [];
    for (let x = 0; x < picture.width; x += 2)
      row.push(tileOf([colorAt(upper, x), colorAt(upper, x + 1), colorAt(lower, x), colorAt(lower, x + 1)]));
    tiles.push(row);
    await turn(row.length);
  }
  return tiles;
}

/** Of its quarters, from the top left. */
function tileOf([a, b, c, d]: readonly [Color, Color, Color, Color]): Tile {
  const luma = Math.round((a[0] + b[0] + c[0] + d[0]) / 4);
  const across = Math.round((a[0] - b[0] + c[0] - d[0]) / 4);
  const down = Math.round((a[0] + b[0] - c[0] - d[0]) / 4);
  // What a sharp corner would bring beyond black or white is left out.
  const fits = Math.abs(across) + Math.abs(down) <= Math.min(luma, 255 - luma);
  const cb = Math.round((a[1] + b[1] + c[1] + d[1]) / 4);
  const cr = Math.round((a[2] + b[2] + c[2] + d[2]) / 4);
  return { luma, across: fits ? across : 0, down: fits ? down : 0, cb, cr };
}

/** Luma, Cb, Cr. */
type Color = readonly [number, number, number];

/** BT.709, limited range. */
function colorAt(row: Uint8Array, x: number): Color {
  const [red, green, blue] = [row[x * 3] as number, row[x * 3 + 1] as number, row[x * 3 + 2] as number];
  const luma = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  const [cb, cr] = [(blue - luma) / 1.8556, (red - luma) / 1.5748];
  return [16 + (luma * 219) / 255, 128 + (cb * 224) / 255, 128 + (cr * 224) / 255];
}

const white = 235;

/** A tile as samples, with as much of the bar as is in it: white up to `end`, the picture darkened after it. */
function samplesOf(
  tile: Tile,
  left: number,
  above: number,
  bar: { readonly end: number; readonly top: number },
): Samples {
  const samples = new Uint8Array(384);
  for (let at = 0; at < 256; at++) {
    const [x, y] = [at % 16, at >> 4];
    const own = tile.luma + (x < 8 ? tile.across : -tile.across) + (y < 8 ? tile.down : -tile.down);
    const isBar = above * 16 + y >= bar.top;
    samples[at] = !isBar ? own : left * 16 + x < bar.end ? white : 16 + (own >> 1);
  }
  for (let at = 0; at < 64; at++) {
    const [x, y] = [(at % 8) * 2, (at >> 3) * 2];
    const isGrey = above * 16 + y >= bar.top && left * 16 + x < bar.end;
    samples[256 + at] = isGrey ? 128 : tile.cb;
    samples[320 + at] = isGrey ? 128 : tile.cr;
  }
  return samples;
}
