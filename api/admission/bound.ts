import type { Bound, Catalog, Model } from "#catalog";
import type { Files } from "#files";
import type { ParsedCall } from "#formats";
import type { Caller } from "#keys";

/** The most that the call can cost. Uploads that it names are checked on the way: they may decide how long the work is. */
export async function boundOf(
  { catalog, files }: { catalog: Catalog; files: Pick<Files, "uploads"> },
  { account, tier }: Pick<Caller, "account" | "tier">,
  model: Model,
  call: ParsedCall,
): Promise<Bound> {
  const uploads = call.uploads.length > 0 ? await files.uploads.check(account, call.uploads) : new Map();
  if (!call.input) return catalog.bound(model, call.size, tier);
  const bytes = new Map([...uploads].map(([id, upload]) => [id, upload.bytes]));
  const { value } = call.input;
  return catalog.boundOfUnits(model, value, catalog.units(model, value, bytes), tier);
}
