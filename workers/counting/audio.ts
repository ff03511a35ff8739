import { parseBuffer } from "music-metadata";

/** The bit rate of a recording, read from its header. */
export interface AudioRate {
  readonly bitsPerSecond: number;
  /** Set if the header of an MP3 counts the frames of a variable bit rate. */
  readonly seconds: number | undefined;
}

/** Must run in a thread that is terminated when it takes too long: some headers keep the parser busy for minutes. */
export async function measureAudio(header: Buffer, mimeType: string): Promise<AudioRate | undefined> {
  const read = await parseBuffer(header, mimeType, { skipCovers: true }).catch(() => undefined);
  if (!read) return undefined;
  const { bitrate = 0, codecProfile, duration } = read.format;
  const isVariable = mimeType === "audio/mpeg" && codecProfile !== "CBR" && duration;
  return { bitsPerSecond: bitrate, seconds: isVariable ? duration : undefined };
}
