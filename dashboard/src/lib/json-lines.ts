/** Files of JSON lines, read as streams: an input of a batch may have 200 MB. */

type Content = ReadableStream<Uint8Array<ArrayBuffer>>;

async function* linesOf(content: Content): AsyncGenerator<string> {
  const reader = content.pipeThrough(new TextDecoderStream()).getReader();
  // A line may consist of many chunks.
  let parts: string[] = [];
  for (;;) {
    const { done, value = "" } = await reader.read();
    if (done) break;
    const [first = "", ...others] = value.split("\n");
    parts.push(first);
    for (const next of others) {
      yield parts.join("");
      parts = [next];
    }
  }
  yield parts.join("");
}

/** The lines that are not empty, unchanged but for the end of the line, each with its value. */
export async function* jsonLines<Line>(content: Content): AsyncGenerator<{ text: string; value: Line }> {
  for await (const text of linesOf(content))
    if (text.trim() !== "") yield { text: text.replace(/\r$/, ""), value: JSON.parse(text) as Line };
}

/** Passes a stream through, and tells how many of its bytes have arrived. */
export const counted = (content: Content, onBytes: (bytes: number) => void): Content => {
  let bytes = 0;
  return content.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(chunk, controller) {
        bytes += chunk.byteLength;
        onBytes(bytes);
        controller.enqueue(chunk);
      },
    }),
  );
};

const blobCharacters = 1024 * 1024;

/** Gathers text in blobs, which the browser may keep on its disk. */
export function createTextGatherer() {
  const blobs: Blob[] = [];
  let texts: string[] = [];
  let characters = 0;
  function flush() {
    if (texts.length > 0) blobs.push(new Blob(texts));
    [texts, characters] = [[], 0];
  }
  return {
    add(text: string): void {
      texts.push(text);
      characters += text.length;
      if (characters >= blobCharacters) flush();
    },
    /** Everything that was added. */
    blobs(): readonly Blob[] {
      flush();
      return blobs;
    },
  };
}
