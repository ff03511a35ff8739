import type { JsonObject } from "#formats";

/** How the events of a stream are set apart. */
export interface Framing {
  readonly frame: (item: JsonObject) => string;
  readonly end: () => string;
}

/** Signs at which some clients' readers end a line, and JSON does not. */
const lineEnds = /[\u0085\u2028\u2029]/g;
const inOneLine = (item: JsonObject): string =>
  JSON.stringify(item).replace(lineEnds, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** With `alt=sse`. There is no mark of the end: the stream is closed. */
export const sseFraming = (): Framing => ({
  frame: (item) => `data: ${inOneLine(item)}\n\n`,
  end: () => "",
});

/** Without: the elements of one JSON array. */
export function arrayFraming(): Framing {
  let isBegun = false;
  return {
    frame(item) {
      const before = isBegun ? ",\r\n" : "[";
      isBegun = true;
      return before + JSON.stringify(item);
    },
    end: () => (isBegun ? "\n]" : "[]"),
  };
}
