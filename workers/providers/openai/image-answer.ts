import { type JsonObject, UpstreamFailure } from "../provider.ts";
import { parse } from "../wire/answers.ts";

const answerLimitBytes = 128 * 1024 * 1024;
const outlineLimit = 4 * 1024 * 1024;

/** In a JSON string every quote has a backslash before it, so this is never found inside one. */
const marker = /"b64_json"\s*:\s*"/g;
const markerLength = 256;

/**
 * Reads the answer of an images call as it comes. Pictures are decoded on the way, so that neither all of the answer nor
 * all of a picture's base64 is ever in memory, and no parser stops the event loop for it: `b64_json` becomes an
 * index into `pictures`.
 */
export async function readImages(
  body: AsyncIterable<Buffer>,
  hold: (bytes: number) => void,
): Promise<{ answer: JsonObject; pictures: Buffer[][] }> {
  const pictures: Buffer[][] = [];
  let outline = "";
  let picture: Base64 | undefined;
  let searched = 0;
  let bytes = 0;

  const read = (text: string): void => {
    for (let rest = text; rest !== ""; ) {
      if (picture) {
        const end = rest.indexOf('"');
        picture.add(end === -1 ? rest : rest.slice(0, end));
        if (end === -1) return;
        pictures.push(picture.end());
        picture = undefined;
        outline += `${pictures.length - 1}"`;
        searched = outline.length;
        rest = rest.slice(end + 1);
      }
      outline += rest;
      marker.lastIndex = searched;
      const found = marker.exec(outline);
      if (!found) {
        searched = Math.max(searched, outline.length - markerLength);
        return;
      }
      const start = found.index + found[0].length;
      rest = outline.slice(start);
      outline = outline.slice(0, start);
      picture = base64();
    }
  };

  for await (const part of body) {
    bytes += part.length;
    if (bytes > answerLimitBytes || outline.length > outlineLimit)
      throw new UpstreamFailure("unavailable", "an answer that is too large");
    hold(part.length);
    // Byte for byte: a character that is split over two parts is whole again at the end.
    read(part.toString("latin1"));
  }
  return { answer: parse(Buffer.from(outline, "latin1").toString("utf8")), pictures };
}

interface Base64 {
  add(text: string): void;
  end(): Buffer[];
}

/** Some encoders write `/`, `+` or line ends in it as escapes. */
function base64(): Base64 {
  const parts: Buffer[] = [];
  let rest = "";
  const decode = (text: string, isLast: boolean) => {
    const plain = unescaped(text).replace(/\s/g, "");
    const whole = isLast ? plain.length : plain.length - (plain.length % 4);
    if (whole > 0) parts.push(Buffer.from(plain.slice(0, whole), "base64"));
    return plain.slice(whole);
  };
  return {
    add(text) {
      rest += text;
      // An escape has at most six characters.
      const escape = rest.indexOf("\\", rest.length - 6);
      const cut = escape === -1 ? rest.length : escape;
      rest = decode(rest.slice(0, cut), false) + rest.slice(cut);
    },
    end() {
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
    throw new UpstreamFailure("unavailable", "what came is not a JSON object");
  }
}
