import { invalidValue } from "#errors";
import type { UploadRef } from "#formats";
import type { FormatConverter, ResolvedUpload } from "../conversion/index.ts";
import type { InputFile, Provider } from "../providers/index.ts";
import type { CallContext } from "../run-call/context.ts";

/** The most that providers accept for one file inside a request, and for all of them. */
const maxInlineBytes = 20 * 1024 * 1024;
const maxInlineTotalBytes = 50 * 1024 * 1024;

/** Builds the request for one provider: links if it accepts them and storage has a public address, else bytes. */
type RequestFor = (provider: Provider) => Promise<CallContext["request"]>;

const placeholder: ResolvedUpload = { mime: "", address: "", base64: "" };

/** Puts the content of uploads into a request in the caller's format. */
export async function withUploads(
  { request, payload, files, signal }: CallContext,
  { resolveUploads }: Pick<FormatConverter, "resolveUploads">,
): Promise<RequestFor> {
  if (!payload.uploads) return async () => request;
  const refs: UploadRef[] = [];
  resolveUploads(request, (ref) => {
    refs.push(ref);
    return placeholder;
  });
  const uploads = await files.uploads.resolve(payload.account, refs, signal);
  const read = new Map<string, Promise<ResolvedUpload>>();
  const asBytes = (file: InputFile) => {
    const content = read.get(file.id) ?? inBytes(file, refs.filter(({ id }) => id === file.id).length);
    read.set(file.id, content);
    return content;
  };
  return async (provider) => {
    const linkOf = ({ id, kind }: UploadRef) =>
      // Only images are accepted by link everywhere.
      provider.takesLinks && kind === "image" ? uploads.get(id)?.link : undefined;
    let inlineBytes = 0;
    for (const ref of refs) {
      if (linkOf(ref) === undefined) inlineBytes += uploads.get(ref.id)?.bytes ?? 0;
      if (inlineBytes > maxInlineTotalBytes)
        throw invalidValue(
          ref.param,
          `${ref.param}: the uploads of a request may have at most ${maxInlineTotalBytes} bytes in total.`,
        );
    }
    // Keyed by field: the same upload may be a link in one and bytes in another.
    const resolved = new Map<string, ResolvedUpload>();
    for (const ref of refs) {
      const file = uploads.get(ref.id) as InputFile;
      const link = linkOf(ref);
      resolved.set(
        ref.param,
        link === undefined ? await asBytes(file) : { mime: file.mime, address: link, base64: "" },
      );
    }
    return resolveUploads(request, ({ param }) => resolved.get(param) as ResolvedUpload);
  };
}

async function inBytes(file: InputFile, times: number): Promise<ResolvedUpload> {
  const head = `data:${file.mime};base64,`;
  const address = head + (await file.base64(maxInlineBytes, times));
  // A slice shares the address's memory.
  return { mime: file.mime, address, base64: address.slice(head.length) };
}
