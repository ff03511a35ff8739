import type { Bound, Catalog, Model } from "#catalog";
import type { Files } from "#files";
import type { MediaPart, ParsedCall } from "#formats";
import type { Caller } from "#keys";

type Checked = Awaited<ReturnType<Files["uploads"]["check"]>>;

/** With what the upload's record says of its bytes, as a part that carries them itself has it. */
function known(part: MediaPart, uploads: Checked): MediaPart {
  const upload = part.upload === undefined ? undefined : uploads.get(part.upload);
  return upload ? { ...part, content: upload.kind, bytes: upload.bytes } : part;
}

/** The most that the call can cost. Uploads that it names are checked on the way: their bytes bound what they count as. */
export async function boundOf(
  { catalog, files }: { catalog: Catalog; files: Pick<Files, "uploads"> },
  { account, tier }: Pick<Caller, "account" | "tier">,
  model: Model,
  call: ParsedCall,
): Promise<Bound> {
  const uploads: Checked = call.uploads.length > 0 ? await files.uploads.check(account, call.uploads) : new Map();
  if (!call.input) {
    const parts = call.size.parts.map((part) => known(part, uploads));
    return catalog.bound(model, { ...call.size, parts }, tier);
  }
  const bytes = new Map([...uploads].map(([id, upload]) => [id, upload.bytes]));
  const { value } = call.input;
  return catalog.boundOfUnits(model, value, catalog.units(model, value, bytes), tier);
}
