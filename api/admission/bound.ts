import type { Bound, Catalog, Model } from "#catalog";
import type { Files } from "#files";
import type { MediaPart, ParsedCall } from "#formats";
import type { Caller } from "#keys";

type CheckedUploads = Awaited<ReturnType<Files["uploads"]["check"]>>;

/** A part that names an upload, with the upload's type and size. */
function withUpload(part: MediaPart, uploads: CheckedUploads): MediaPart {
  const upload = part.upload === undefined ? undefined : uploads.get(part.upload);
  return upload ? { ...part, content: upload.kind, bytes: upload.bytes } : part;
}

/** The most that the call can cost. Checks the uploads that it names, whose sizes bound what they count as. */
export async function boundOf(
  { catalog, files }: { catalog: Catalog; files: Pick<Files, "uploads"> },
  { account, tier }: Pick<Caller, "account" | "tier">,
  model: Model,
  call: ParsedCall,
): Promise<Bound> {
  const uploads: CheckedUploads =
    call.uploads.length > 0 ? await files.uploads.check(account, call.uploads) : new Map();
  if (!call.input) {
    const parts = call.size.parts.map((part) => withUpload(part, uploads));
    return catalog.bound(model, { ...call.size, parts }, tier);
  }
  const bytes = new Map([...uploads].map(([id, upload]) => [id, upload.bytes]));
  const { value } = call.input;
  return catalog.boundOfUnits(model, value, catalog.units(model, value, bytes), tier);
}
