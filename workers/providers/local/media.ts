import { inlineOf } from "#formats";
import { type Counting, fileTokens, rulesOf } from "../../counting/index.ts";
import { describeImage } from "./inputs.ts";
import { type ChatRequest, lastUserMessage, type Part, quote } from "./request.ts";

/** The images, recordings and files of a conversation, as the local model reads them. */
export interface ReadMedia {
  /** A sentence for each part of the last user message. */
  readonly sentences: readonly string[];
  /** Tokens of all messages. */
  readonly tokens: number;
  /** The part of `tokens` that is audio. */
  readonly audioTokens: number;
  /** The content of text files, whose tokens are those of their text. */
  readonly texts: readonly string[];
}

interface ReadPart {
  readonly sentence: string;
  readonly tokens?: number;
  readonly isAudio?: true;
  readonly text?: string;
}

interface Reading {
  readonly counting: Pick<Counting, "measureDocument" | "secondsOf">;
  readonly signal: AbortSignal;
}

const rules = rulesOf("local", "");

export async function readMedia(request: ChatRequest, reading: Reading): Promise<ReadMedia> {
  const last = lastUserMessage(request);
  const sentences: string[] = [];
  const texts: string[] = [];
  let tokens = 0;
  let audioTokens = 0;
  for (const [m, message] of request.messages.entries()) {
    if (!Array.isArray(message.content)) continue;
    for (const [c, part] of message.content.entries()) {
      const read = await readPart(part, `messages[${m}].content[${c}]`, message === last, reading);
      if (!read) continue;
      if (message === last) sentences.push(read.sentence);
      if (read.text !== undefined) texts.push(read.text);
      tokens += read.tokens ?? 0;
      if (read.isAudio) audioTokens += read.tokens ?? 0;
    }
  }
  return { sentences, texts, tokens, audioTokens };
}

async function readPart(part: Part, at: string, isLast: boolean, reading: Reading): Promise<ReadPart | undefined> {
  reading.signal.throwIfAborted();
  if ("image_url" in part) {
    const url = typeof part.image_url === "string" ? part.image_url : part.image_url.url;
    return readImage(url, `${at}.image_url`, isLast);
  }
  if ("input_audio" in part) {
    const { data, format } = part.input_audio;
    return readAudio(inlineOf(data)?.data ?? data, format, reading);
  }
  return "file" in part ? readFile(part.file.file_data, `${at}.file.file_data`, isLast, reading) : undefined;
}

/** Images of earlier messages are counted but not described. */
const readImage = (url: string, param: string, isLast: boolean): ReadPart => ({
  sentence: isLast ? `I see ${describeImage(url, param)}.` : "",
  tokens: rules.unknownImage,
});

/** Assumed rate of a recording whose length cannot be read: 128 kbit/s. */
const usualBytesPerSecond = 16_000;

/** `format` is `wav`, `mp3`, or another subtype of audio. */
async function readAudio(base64: string, format: string, { counting, signal }: Reading): Promise<ReadPart> {
  const bytes = Buffer.from(base64, "base64");
  const mime = `audio/${format === "mp3" ? "mpeg" : format}`;
  const seconds = await counting.secondsOf({ bytes, mime, account: "" }, signal);
  const length = seconds === undefined ? "unknown length" : `${Math.round(seconds * 1000) / 1000} seconds`;
  return {
    sentence: `I hear a recording (${format.slice(0, 40)}) of ${length}, ${bytes.length} bytes.`,
    tokens: Math.ceil((seconds ?? bytes.length / usualBytesPerSecond) * rules.audioSecond),
    isAudio: true,
  };
}

/** OpenAI's clients also send a PDF as bare base64. */
const ofPdf = (base64: string) => ({ mimeType: "application/pdf", data: base64 });

async function readFile(address: string, param: string, isLast: boolean, reading: Reading): Promise<ReadPart> {
  if (/^https?:/i.test(address)) {
    const sentence = `I read a file at ${address.slice(0, 200)} (not fetched: this model has no network).`;
    return { sentence, tokens: rules.page };
  }
  const { mimeType, data } = inlineOf(address) ?? ofPdf(address);
  const [, family, subtype = ""] = /^(image|audio|text)\/(?:x-)?(.*)$/i.exec(mimeType) ?? [];
  if (family === "image") return readImage(address, param, isLast);
  if (family === "audio") return readAudio(data, subtype === "mpeg" ? "mp3" : subtype, reading);
  const bytes = Buffer.byteLength(data, "base64");
  if (family === "text" || mimeType === "application/json") {
    const text = Buffer.from(data, "base64").toString();
    return { sentence: `I read a text file of ${bytes} bytes: ${quote(text)}.`, text };
  }
  const isPdf = mimeType === "application/pdf";
  const size = isPdf ? await reading.counting.measureDocument(data, reading.signal) : undefined;
  const counted = fileTokens({ file_data: data }, rules);
  const pages = size ? ` of ${size.pages} ${size.pages === 1 ? "page" : "pages"}` : "";
  return {
    sentence: `I read a ${isPdf ? "PDF" : mimeType.slice(0, 100)} file${pages}, ${bytes} bytes.`,
    tokens: typeof counted === "number" ? counted : counted.tokens(size),
  };
}
