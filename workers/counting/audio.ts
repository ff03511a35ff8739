import { parseBuffer } from "music-metadata";

/** Of a recording, by its header. */
export interface AudioRate {
  readonly bitsPerSecond: number;
  /** Where the header of an MP3 counts the frames of a variable bit rate. */
  readonly seconds: number | undefined;
}

/** Only for a thread that is ended when it takes too long: some headers take the parser minutes. */
export async function measureAudio(header: Buffer, mimeType: string): Promise<AudioRate | undefined> {
  const read = await parseBuffer(header, mimeType, { skipCovers: true }).catch(() => undefined);
  if (!read) return undefined;
  const { bitrate = 0, codecProfile, duration } = read.format;
  const isVariable = mimeType === "audio/mpeg" && codecProfile !== "CBR" && duration;
  return { bitsPerSecond: bitrate, seconds: isVariable ? duration : undefined };
}
