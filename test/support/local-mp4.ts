import { expect } from "vitest";

interface Box {
  readonly type: string;
  /** The offset of its content in the file. */
  readonly at: number;
  readonly data: Buffer;
}

function boxesOf(bytes: Buffer, from = 0): readonly Box[] {
  const boxes: Box[] = [];
  let at = 0;
  while (at < bytes.length) {
    const size = bytes.readUInt32BE(at);
    expect(size).toBeGreaterThanOrEqual(8);
    expect(at + size).toBeLessThanOrEqual(bytes.length);
    boxes.push({
      type: bytes.toString("latin1", at + 4, at + 8),
      at: from + at + 8,
      data: bytes.subarray(at + 8, at + size),
    });
    at += size;
  }
  return boxes;
}

/** The content of the box at the path. */
function box(bytes: Buffer, ...path: readonly string[]): Buffer {
  let data = bytes;
  for (const type of path) {
    const found = boxesOf(data).filter((each) => each.type === type);
    expect(found.map((each) => each.type)).toEqual([type]);
    data = (found[0] as Box).data;
  }
  return data;
}

const words = (data: Buffer) =>
  Array.from({ length: Math.floor(data.length / 4) }, (_, at) => data.readUInt32BE(at * 4));

/** Reads numbers of a parameter set, after removing the bytes that prevent start codes. */
function bitReader(nal: Buffer) {
  const bytes: number[] = [];
  for (const [at, byte] of nal.entries()) if (!(byte === 3 && nal[at - 1] === 0 && nal[at - 2] === 0)) bytes.push(byte);
  let at = 0;
  const bit = () => (((bytes[at >> 3] as number) >> (7 - (at++ & 7))) & 1) as number;
  const bits = (count: number) => Array.from({ length: count }, bit).reduce((value, each) => value * 2 + each, 0);
  const ue = () => {
    let zeros = 0;
    while (bit() === 0) zeros++;
    return 2 ** zeros - 1 + bits(zeros);
  };
  return { bits, ue };
}

function readSps(nal: Buffer) {
  const { bits, ue } = bitReader(nal);
  expect(bits(8) & 0x1f).toBe(7);
  const [profile, constraints, level] = [bits(8), bits(8), bits(8)];
  const [, , , references] = [ue(), ue(), ue(), ue()];
  bits(1);
  const [across, down] = [ue() + 1, ue() + 1];
  expect(bits(2)).toBe(3);
  const [start, end, top, bottom] = bits(1) ? [ue(), ue(), ue(), ue()] : [0, 0, 0, 0];
  return {
    profile,
    constraints,
    level,
    references,
    width: across * 16 - (start + end) * 2,
    height: down * 16 - (top + bottom) * 2,
  };
}

/** A player's view of a video with one track, and its frames by the sample tables. */
export function readVideo(mp4: Buffer) {
  const boxes = boxesOf(mp4);
  const movie = words(box(mp4, "moov", "mvhd"));
  const track = box(mp4, "moov", "trak", "tkhd");
  const media = words(box(mp4, "moov", "trak", "mdia", "mdhd"));
  const table = (type: string) => box(mp4, "moov", "trak", "mdia", "minf", "stbl", type);
  const entry = boxesOf(table("stsd").subarray(8))[0] as Box;
  expect(entry.type).toBe("avc1");
  const config = box(entry.data.subarray(78), "avcC");
  expect([...config.subarray(4, 6)]).toEqual([0xff, 0xe1]);
  const spsLength = config.readUInt16BE(6);
  const sps = config.subarray(8, 8 + spsLength);
  expect(config.subarray(1, 4)).toEqual(sps.subarray(1, 4));
  expect(config[8 + spsLength]).toBe(1);
  const pps = config.subarray(11 + spsLength);
  expect(config.readUInt16BE(9 + spsLength)).toBe(pps.length);

  const [, times, count, ticks] = words(table("stts")) as [number, number, number, number];
  expect(times).toBe(1);
  const sizes = words(table("stsz")).slice(3);
  expect(sizes).toHaveLength(count);
  expect(words(table("stsc"))).toEqual([0, 1, 1, count, 1]);
  const keys = new Set(words(table("stss")).slice(2));
  const [, chunks, first] = words(table("stco")) as [number, number, number];
  expect(chunks).toBe(1);
  const data = boxes.at(-1) as Box;
  expect(first).toBe(data.at);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(data.data.length);

  let at = first;
  const frames = sizes.map((size, index) => {
    const sample = mp4.subarray(at, at + size);
    at += size;
    const nalTypes: number[] = [];
    for (let unit = 0; unit < size; unit += 4 + sample.readUInt32BE(unit))
      nalTypes.push((sample[unit + 4] as number) & 0x1f);
    expect(sample.readUInt32BE(0)).toBe(size - 4);
    return { data: sample, isKey: keys.has(index + 1), nalTypes };
  });
  return {
    boxes: boxes.map(({ type }) => type),
    header: { width: track.readUInt32BE(76) / 65_536, height: track.readUInt32BE(80) / 65_536 },
    sps: readSps(sps),
    pps: { type: (pps[0] as number) & 0x1f },
    seconds: {
      movie: (movie[4] as number) / (movie[3] as number),
      track: (media[4] as number) / (media[3] as number),
      samples: (count * ticks) / (media[3] as number),
    },
    frames,
  };
}
