import type { Loose } from "../loose.ts";

/** How the events of a stream are set apart. */
export interface Framing {
  readonly frame: (item: Loose) => string;
  readonly end: () => string;
}

/** With `alt=sse`. There is no mark of the end: the stream is closed. */
export const sseFraming = (): Framing => ({
  frame: (item) => `data: ${JSON.stringify(item)}\n\n`,
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
