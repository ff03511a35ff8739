import type { JsonObject } from "#json";
import { parseAnswer } from "../http/untrusted-json.ts";
import { UpstreamFailure } from "../provider.ts";

const answerLimitBytes = 128 * 1024 * 1024;
const maxOutlineCharacters = 4 * 1024 * 1024;

/** This never matches inside a JSON string, where a backslash precedes every quote. */
const marker = /"b64_json"\s*:\s*"/g;
const markerLength = 256;

/**
 * Reads the answer of an images call as it arrives. Images are decoded part by part, so that neither the whole answer nor
 * the whole base64 of an image is ever in memory, and no parser blocks the event loop for it. In the answer, `b64_json`
 * becomes an index into `images`.
 */
export async function readImages(
  body: AsyncIterable<Buffer>,
  hold: (bytes: number) => void,
): Promise<{ answer: JsonObject; images: Buffer[][] }> {
  const images: Buffer[][] = [];
  let outline = "";
  let image: ReturnType<typeof createDecoder> | undefined;
  let searchedUntil = 0;
  let bytes = 0;

  const read = (text: string): void => {
    for (let rest = text; rest !== ""; ) {
      if (image) {
        const end = rest.indexOf('"');
        image.add(end === -1 ? rest : rest.slice(0, end));
        if (end === -1) return;
        images.push(image.end());
        image = undefined;
        outline += `${images.length - 1}"`;
        searchedUntil = outline.length;
        rest = rest.slice(end + 1);
      }
      outline += rest;
      marker.lastIndex = searchedUntil;
      const found = marker.exec(outline);
      if (!found) {
        searchedUntil = Math.max(searchedUntil, outline.length - markerLength);
        return;
      }
      const start = found.index + found[0].length;
      rest = outline.slice(start);
      outline = outline.slice(0, start);
      image = createDecoder();
    }
  };

  for await (const part of body) {
    bytes += part.length;
    if (bytes > answerLimitBytes || outline.length > maxOutlineCharacters)
      throw new UpstreamFailure("unavailable", "an answer that is too large");
    hold(part.length);
    // Latin-1 maps each byte to one character, so UTF-8 split over two parts is whole again at the end.
    read(part.toString("latin1"));
  }
  return { answer: parseAnswer(Buffer.from(outline, "latin1").toString("utf8")), images };
}

/** Decodes base64 in which some encoders escape `/`, `+` or line ends. */
function createDecoder() {
  const parts: Buffer[] = [];
  let rest = "";
  const decode = (text: string, isLast: boolean) => {
    const plain = unescaped(text).replace(/\s/g, "");
    const whole = isLast ? plain.length : plain.length - (plain.length % 4);
    if (whole > 0) parts.push(Buffer.from(plain.slice(0, whole), "base64"));
    return plain.slice(whole);
  };
  return {
    add(text: string) {
      rest += text;
      // An escape has at most six characters.
      const escape = rest.indexOf("\\", rest.length - 6);
      const cut = escape === -1 ? rest.length : escape;
      rest = decode(rest.slice(0, cut), false) + rest.slice(cut);
    },
    end(): Buffer[] {
      decode(rest, true);
      return parts;
    },
  };
}

function unescaped(text: string): string {
  if (!text.includes("\\")) return text;
  try {
    return JSON.parse(`"${text}"`) as string;
  } catch {
    throw new UpstreamFailure("unavailable", "the answer is not a JSON object");
  }
}
