import { invalidValue } from "#errors";
import type { Dialect, Placed, UploadRef } from "#formats";
import type { Attempt } from "../call.ts";
import type { InputFile, Provider } from "../providers/index.ts";

/** The most that makers take of a file inside a request, and of all of them. */
const inlineLimitBytes = 20 * 1024 * 1024;
const inlineTotalBytes = 50 * 1024 * 1024;

/** The request for one provider: links where it takes them and storage can be reached from outside, else the bytes. */
export type RequestFor = (provider: Provider) => Attempt["request"] | Promise<Attempt["request"]>;

const nothing: Placed = { mime: "", address: "", base64: "" };

/** Puts the content of uploads into a request in the caller's format. */
export async function withUploads(
  { request, payload, files, signal }: Attempt,
  { placeUploads }: Pick<Dialect, "placeUploads">,
): Promise<RequestFor> {
  if (!payload.uploads) return () => request;
  const refs: UploadRef[] = [];
  placeUploads(request, (ref) => {
    refs.push(ref);
    return nothing;
  });
  const uploads = await files.uploads.resolve(payload.account, refs, signal);
  const read = new Map<string, Promise<Placed>>();
  const asBytes = (file: InputFile) => {
    const placed = read.get(file.id) ?? inBytes(file);
    read.set(file.id, placed);
    return placed;
  };
  return async (provider) => {
    // By field: the same upload may go one way here, and another there.
    const placed = new Map<string, Placed>();
    let inlineBytes = 0;
    for (const { id, param, kind } of refs) {
      const file = uploads.get(id) as InputFile;
      // Only images are taken by link everywhere.
      const link = provider.takesLinks && kind === "image" ? file.link : undefined;
      if (link === undefined) inlineBytes += file.bytes;
      if (inlineBytes > inlineTotalBytes)
        throw invalidValue(
          param,
          `${param}: the uploads of a request have at most ${inlineTotalBytes} bytes together.`,
        );
      placed.set(param, link === undefined ? await asBytes(file) : { mime: file.mime, address: link, base64: "" });
    }
    return placeUploads(request, ({ param }) => placed.get(param) as Placed);
  };
}

async function inBytes(file: InputFile): Promise<Placed> {
  const base64 = (await file.read(inlineLimitBytes)).toString("base64");
  return { mime: file.mime, address: `data:${file.mime};base64,${base64}`, base64 };
}
