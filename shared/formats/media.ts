const dataAddress = /^data:([^;,]*)(?:;[^;,]*)*;base64,/i;

/** `data:<mime>;base64,<data>`, taken apart. */
export function inlineOf(address: string): { mimeType: string; data: string } | undefined {
  const [head, mime = ""] = dataAddress.exec(address) ?? [];
  return head === undefined ? undefined : { mimeType: mime, data: address.slice(head.length) };
}

const wavNames = new Set(["wav", "x-wav", "wave", "vnd.wave", "x-pn-wav"]);

/** As OpenAI names audio formats: `wav`, `mp3`. */
export function audioFormat(mime: string): string {
  const name = mime
    .replace(/^audio\//i, "")
    .replace(/;.*$/, "")
    .toLowerCase();
  if (wavNames.has(name)) return "wav";
  return name === "mpeg" || name === "mpga" ? "mp3" : name.replace(/^x-/, "");
}
