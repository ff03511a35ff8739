import type { Bound, Input, Model } from "#catalog";
import type { Files } from "#files";
import { estimateTokens, type MediaPart, type ParsedCall } from "#formats";
import { jobCatalog } from "#jobs";
import type { Caller, Keys, Slot } from "#keys";
import { type CallHold, formatUsd, type Leased, type LeaseRequest, type Leases, type Money } from "#money";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { PaidRoute } from "../paid-route.ts";
import { checkCapacity, type ModelDeps, resolveModel } from "./model.ts";

export interface AdmissionDeps extends ModelDeps {
  readonly keys: Keys;
  readonly money: Money;
  readonly leases: Leases;
  readonly files: Files;
  readonly clock: Clock;
  readonly backlogLimit: number;
  readonly log: Logger;
}

export interface AdmissionRequest {
  readonly requestId: string;
  readonly slot: Slot;
  readonly call: ParsedCall;
  readonly route: PaidRoute;
  /** Unix milliseconds. */
  readonly deadlineAt: number;
  /** Its hold comes out of a lease of its account. */
  readonly isLeased: boolean;
}

interface Held {
  readonly heldNanoUsd: bigint;
  /** Absent: the call has a hold of its own. */
  readonly leased?: Leased;
}

export interface Admitted extends Held {
  /** Output tokens for each choice that the hold pays for. */
  readonly outputCap: number;
  /** The caller set no cap, and the hold pays for all that the model can write. */
  readonly isCapDefault: boolean;
  readonly model: Model;
  /** The most tokens that its usage may count, whatever the provider reports. */
  readonly maxTokens: number;
  /** Input tokens that the hold covers. */
  readonly inputBound: number;
  readonly inputEstimate: number;
}

const freeOfCharge = { maxNanoUsd: 0n, minNanoUsd: 0n, outputCap: 0, capFor: () => 0 };

/** How long a refused caller waits for its hold to be settled. */
const settleMs = 2_000;
/** A hold outlives its call by this much before the sweeper looks at it. */
const holdMarginMs = 120_000;

/** Whether the call can run now, and the most that it can cost. Takes nothing. */
export async function check(
  deps: Omit<AdmissionDeps, "keys" | "money">,
  { call, caller, route }: Pick<AdmissionRequest, "call" | "route"> & { caller: Pick<Caller, "account" | "tier"> },
): Promise<{ readonly model: Model; readonly bound: Bound }> {
  const model = resolveModel(deps, route, call);
  const input = call.input && deps.catalog.checkInput(model, call.input);
  checkCapacity(deps, jobCatalog[route.job].pool, model);
  return { model, bound: await boundOf(deps, caller, model, call, input) };
}

/**
 * The checks of a paid call, cheapest first; each throws its own error. An admitted call has its tokens taken and its money
 * held. A refused one has nothing held; its slot, with the tokens taken, is for the caller of this function to release.
 */
export async function admit(deps: AdmissionDeps, request: AdmissionRequest): Promise<Admitted> {
  const { call, slot, route, requestId } = request;
  const { caller } = slot;
  const checked = await check(deps, { call, route, caller });
  const { model } = checked;
  const bound = route.isFree ? { ...checked.bound, ...freeOfCharge } : checked.bound;
  const inputEstimate = Math.min(bound.inputTokens, estimateTokens(call.textBytes));
  const outputTokens = call.size.outputCap === undefined ? 0 : bound.outputCap * call.size.choices;
  const tokens = route.isFree ? 0 : inputEstimate + outputTokens;
  const entry = { account: caller.account, key: caller.keyId, requestId, endpoint: route.endpoint, model: model.id };

  const taking = tokens > 0 ? deps.keys.takeTokens(slot, tokens) : Promise.resolve();
  // Far from the limit a refusal is unlikely: the hold need not wait for it.
  if (tokens > slot.rateLimits.tokens.remaining / 2) await taking;
  const expiresAt = request.deadlineAt + holdMarginMs;
  const take = async (call: CallHold): Promise<Held> =>
    request.isLeased
      ? holdFromLease(deps.leases, { ...call, frozen: caller.frozen })
      : { heldNanoUsd: await deps.money.holdForCall(call) };
  const [taken, holding] = await Promise.allSettled([taking, hold(take, { ...entry, expiresAt, bound })]);
  if (holding.status === "rejected") throw holding.reason;
  const held = holding.value;
  if (taken.status === "rejected") {
    await release(deps, entry, held);
    throw taken.reason;
  }
  const maxTokens = bound.inputTokens + held.outputCap * call.size.choices;
  const isCapDefault = call.size.outputCap === undefined && held.outputCap === bound.outputCap;
  return { ...held, isCapDefault, model, maxTokens, inputBound: bound.inputTokens, inputEstimate };
}

type CheckedUploads = Awaited<ReturnType<Files["uploads"]["check"]>>;

/** A part that names an upload, with the upload's type and size. */
function withUpload(part: MediaPart, uploads: CheckedUploads): MediaPart {
  const upload = part.upload === undefined ? undefined : uploads.get(part.upload);
  return upload ? { ...part, content: upload.kind, bytes: upload.bytes } : part;
}

/** The most that the call can cost. Checks the uploads that it names, whose sizes bound what they count as. */
async function boundOf(
  { catalog, files }: Pick<AdmissionDeps, "catalog" | "files">,
  { account, tier }: Pick<Caller, "account" | "tier">,
  model: Model,
  call: ParsedCall,
  input: Input | undefined,
): Promise<Bound> {
  const uploads: CheckedUploads =
    call.uploads.length > 0 ? await files.uploads.check(account, call.uploads) : new Map();
  if (!input) {
    const parts = call.size.parts.map((part) => withUpload(part, uploads));
    return catalog.bound(model, { ...call.size, parts }, tier);
  }
  const bytes = new Map([...uploads].map(([id, upload]) => [id, upload.bytes]));
  return catalog.boundOfUnits(model, input, catalog.units(model, input, bytes), tier);
}

async function holdFromLease(leases: Leases, call: LeaseRequest): Promise<Held> {
  const leased = await leases.hold(call);
  return { heldNanoUsd: leased.heldNanoUsd, leased };
}

/** Holds the most that the call can cost, or, if the caller set no cap, the part of it that the balance covers. */
export async function hold(
  take: (call: CallHold) => Promise<Held>,
  call: Omit<CallHold, "maxNanoUsd" | "minNanoUsd" | "insufficientText"> & { readonly bound: Bound },
) {
  const { bound, ...target } = call;
  const { maxNanoUsd, minNanoUsd } = bound;
  const held = await take({
    ...target,
    maxNanoUsd,
    minNanoUsd,
    insufficientText: (availableNanoUsd) => insufficientText(bound, availableNanoUsd),
  });
  return { ...held, outputCap: held.heldNanoUsd === maxNanoUsd ? bound.outputCap : bound.capFor(held.heldNanoUsd) };
}

/** Returns the hold of a call that is refused after all. */
async function release(
  { money, log }: Pick<AdmissionDeps, "money" | "log">,
  entry: Pick<CallHold, "account" | "key" | "requestId" | "endpoint" | "model">,
  { heldNanoUsd, leased }: Held,
): Promise<void> {
  if (leased) return leased.end(0n);
  const refused = { ...entry, heldNanoUsd, totalMs: 0, signal: AbortSignal.timeout(settleMs) };
  await money
    .release(refused, { status: "failed", error: "rate_limit_exceeded" })
    .catch((error: unknown) => log.warn({ err: error, ...entry }, "the sweeper has to settle a hold"));
}

/** What the input can cost, and how many output tokens the balance covers if the caller named a cap. */
function insufficientText(bound: Bound, availableNanoUsd: bigint): string {
  const { maxNanoUsd, inputNanoUsd, outputCap, isCapNamed } = bound;
  const balance = `the balance has ${formatUsd(availableNanoUsd)}.`;
  if (outputCap === 0) return `The balance is too low. The call can cost ${formatUsd(maxNanoUsd)} USD; ${balance}`;
  const input = `The balance is too low. The input alone can cost ${formatUsd(inputNanoUsd)} USD; ${balance}`;
  if (!isCapNamed) return input;
  return `${input} You asked for up to ${outputCap} tokens; the balance covers ${bound.capFor(availableNanoUsd)}.`;
}
