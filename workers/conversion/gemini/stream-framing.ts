import { type JsonObject } from "#formats";

/** How the events of one stream are delimited; created for each stream. */
export type StreamFraming = () => {
  readonly frame: (event: JsonObject) => string;
  readonly end: () => string;
};

/** Some clients split lines at these characters, which JSON.stringify does not escape. */
const lineSeparators = /[\u0085\u2028\u2029]/g;
const escapeCharacter = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** With `alt=sse`. The end of the stream has no event of its own. */
export const serverSentEvents: StreamFraming = () => ({
  frame: (event) => `data: ${JSON.stringify(event).replace(lineSeparators, escapeCharacter)}\n\n`,
  end: () => "",
});

/** Without `alt=sse`: the elements of one JSON array. */
export const jsonArray: StreamFraming = () => {
  let hasElements = false;
  return {
    frame(event) {
      const separator = hasElements ? ",\r\n" : "[";
      hasElements = true;
      return separator + JSON.stringify(event);
    },
    end: () => (hasElements ? "\n]" : "[]"),
  };
};
