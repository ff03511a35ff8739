import type { Bound, Catalog, Model } from "#catalog";
import type { Files } from "#files";
import type { MediaPart, ParsedCall } from "#formats";
import type { Caller } from "#keys";
import { type CallHold, formatUsd, type Money } from "#money";

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

export interface Held {
  readonly heldNanoUsd: bigint;
  /** Output tokens for each choice that the hold pays for. */
  readonly outputCap: number;
}

/** Holds the most that the call can cost, or, if the caller set no cap, the part of it that the balance covers. */
export async function hold(
  money: Money,
  call: Omit<CallHold, "maxNanoUsd" | "minNanoUsd" | "insufficientText"> & { readonly bound: Bound },
): Promise<Held> {
  const { bound, ...target } = call;
  const { mostNanoUsd, leastNanoUsd } = bound;
  const heldNanoUsd = await money.holdForCall({
    ...target,
    maxNanoUsd: mostNanoUsd,
    minNanoUsd: leastNanoUsd,
    insufficientText: (availableNanoUsd) => insufficientText(bound, availableNanoUsd),
  });
  return { heldNanoUsd, outputCap: heldNanoUsd === mostNanoUsd ? bound.outputCap : bound.capFor(heldNanoUsd) };
}

/** What the input can cost, and how many output tokens the balance covers if the caller named a cap. */
function insufficientText(bound: Bound, availableNanoUsd: bigint): string {
  const { mostNanoUsd, inputNanoUsd, outputCap, isCapNamed } = bound;
  const balance = `the balance has ${formatUsd(availableNanoUsd)}.`;
  if (outputCap === 0) return `The balance is too low. The call can cost ${formatUsd(mostNanoUsd)} USD; ${balance}`;
  const input = `The balance is too low. The input alone can cost ${formatUsd(inputNanoUsd)} USD; ${balance}`;
  if (!isCapNamed) return input;
  return `${input} You asked for up to ${outputCap} tokens; the balance covers ${bound.capFor(availableNanoUsd)}.`;
}
