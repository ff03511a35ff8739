import type { Bound } from "#catalog";
import { insufficientBalance, toServiceError } from "#errors";
import type { FileSizes, Files } from "#files";
import { estimateTokens, type MediaPart, type ParsedCall } from "#formats";
import type { Caller, Keys, Slot } from "#keys";
import { type CallHold, feeOf, formatUsd, type Leased, type Leases, listWithin, type Money } from "#money";
import type { Uses } from "#platform/uses";
import type { PaidRoute } from "../paid-route.ts";
import { type OwnKeysOwner, ownKeysFor, usesOnlyOwn } from "./own-keys.ts";
import { findTargets, type Target, type TargetDeps } from "./targets.ts";

export interface AdmissionDeps extends Uses<"clock" | "log">, TargetDeps {
  readonly keys: Keys;
  readonly money: Money;
  readonly leases: Leases;
  readonly files: Files;
  /** The fee of calls with own provider keys, in basis points of the list price. */
  readonly byokFeeBps: number;
  /** The id of this API instance. */
  readonly instance: string;
}

interface AdmissionRequest {
  readonly requestId: string;
  readonly slot: Slot;
  readonly call: ParsedCall;
  readonly route: PaidRoute;
  /** Unix milliseconds. */
  readonly deadlineAt: number;
  /** The result of `check` for the same call and caller, if it is known. */
  readonly checked?: Checked | undefined;
  /** The call shares a job with other calls of this instance, and its hold comes out of a lease of its account. */
  readonly isLeased: boolean;
  /**
   * The call is a line of a batch: it has the price of those, and its hold covers the maximum cost even if the caller set no
   * cap. It is refused if the balance does not.
   */
  readonly isInBatch?: boolean;
  /** The lease for a line that runs in a batch of its upstream. Undefined stands for the account's own leases. */
  readonly leaseFor?: (target: Target) => Pick<Leases, "hold"> | undefined;
}

interface Held {
  readonly heldNanoUsd: bigint;
  /** Set if the hold comes out of a lease. */
  readonly leased?: Leased;
}

/** A model for the call, and what the hold covers at it. */
export interface AdmittedTarget extends Target {
  /** Output tokens per choice that the hold covers. */
  readonly outputCap: number;
  /** The caller set no cap, and the hold covers the longest output of the model. */
  readonly isCapDefault: boolean;
  /** Input tokens that the hold covers. */
  readonly inputBound: number;
}

export interface Admitted extends Held {
  /** Ordered as they are tried. */
  readonly targets: readonly [AdmittedTarget, ...AdmittedTarget[]];
  /** Upper limit of the tokens counted for the call, whatever the provider reports. */
  readonly maxTokens: number;
  readonly inputEstimate: number;
}

interface BoundTarget extends Target {
  /** The bound of what the call is charged: of its fee if only own provider keys may serve it. */
  readonly bound: Bound;
  /** The bound of the call at the list price. */
  readonly listNanoUsd: bigint;
}

export interface Checked {
  readonly targets: readonly [BoundTarget, ...BoundTarget[]];
  /** The maximum cost of the call at any of them. */
  readonly bound: Bound;
  readonly inputEstimate: number;
  /** The tokens that count against the key's limit until the call has ended: those of the output only if it has a cap. */
  readonly tokens: number;
}

/** A refused caller waits this long for its hold to be released. */
const releaseMs = 2_000;
/** A hold expires this long after its call's deadline; then the sweeper settles it. */
const holdMarginMs = 120_000;

/** The tokens of such a caller are taken together with what a hold takes from its budgets. */
export const isBudgeted = ({ budget, sharedBudgets }: Caller): boolean => budget !== null || sharedBudgets.length > 0;

/** Throws if the call cannot run now. Returns its models and its maximum cost. Takes nothing. */
export async function check(
  deps: Omit<AdmissionDeps, "money">,
  {
    call,
    caller,
    route,
  }: Pick<AdmissionRequest, "call" | "route"> & {
    caller: Pick<Caller, "tier" | "models"> & OwnKeysOwner;
  },
): Promise<Checked> {
  const [first, ...rest] = findTargets(deps, route, call, caller, await ownKeysFor(deps, caller));
  const uploads: CheckedUploads =
    call.uploads.length > 0 ? await deps.files.uploads.check(caller.account, call.uploads) : new Map();
  const boundAt = (target: Target): BoundTarget => {
    const list = boundOf(deps, caller.tier, target, call, uploads);
    return { ...target, bound: chargedBound(deps, target, list), listNanoUsd: list.maxNanoUsd };
  };
  const targets = [boundAt(first), ...rest.map(boundAt)] as const;
  const bounds = targets.map(({ bound }) => bound);
  const inputBound = Math.max(...bounds.map(({ inputTokens }) => inputTokens));
  const inputEstimate = Math.min(inputBound, estimateTokens(call.textBytes));
  const outputBound = Math.max(...bounds.map(({ outputCap }) => outputCap));
  const outputTokens = call.size.outputCap === undefined ? 0 : outputBound * call.size.choices;
  return { targets, bound: dearest(bounds), inputEstimate, tokens: inputEstimate + outputTokens };
}

/** The bound of what a call is charged at this target. */
function chargedBound({ byokFeeBps }: Pick<AdmissionDeps, "byokFeeBps">, { upstreams }: Target, list: Bound): Bound {
  if (!usesOnlyOwn(upstreams)) return list;
  const { maxNanoUsd, minNanoUsd, inputNanoUsd, outputCap } = list;
  return {
    ...list,
    maxNanoUsd: feeOf(maxNanoUsd, byokFeeBps),
    minNanoUsd: feeOf(minNanoUsd, byokFeeBps),
    inputNanoUsd: feeOf(inputNanoUsd, byokFeeBps),
    capFor(grantedNanoUsd) {
      const granted = listWithin(grantedNanoUsd, byokFeeBps);
      return granted === undefined ? outputCap : list.capFor(granted);
    },
  };
}

/** The whole of what a line may cost at the dearest of its models. */
function boundInBatch(
  { catalog, byokFeeBps }: Pick<AdmissionDeps, "catalog" | "byokFeeBps">,
  { targets, bound }: Checked,
): Bound {
  const costs = targets.map(({ model, upstreams, listNanoUsd }) => {
    const inBatch = catalog.inBatch(model, listNanoUsd);
    return usesOnlyOwn(upstreams) ? feeOf(inBatch, byokFeeBps) : inBatch;
  });
  const maxNanoUsd = costs.reduce((most, each) => (each > most ? each : most), 0n);
  return { ...bound, maxNanoUsd, minNanoUsd: maxNanoUsd };
}

/** A call whose files have not been stored yet. */
export interface CallWithFiles extends Pick<AdmissionRequest, "call" | "route"> {
  readonly caller: Pick<Caller, "account" | "tier" | "models" | "keyId">;
  /** Sizes under the placeholder ids in the call's JSON. */
  readonly files: FileSizes;
}

/** Throws if the call could not be admitted even once its files are stored. Takes nothing. */
export async function checkBeforeFiles(
  deps: AdmissionDeps,
  { call, caller, route, files }: CallWithFiles,
): Promise<void> {
  const [target] = findTargets(deps, route, call, caller, await ownKeysFor(deps, caller));
  const bound = chargedBound(deps, target, boundOf(deps, caller.tier, target, call, files));
  // Compare with the balance instead of the available amount: a lease or a running call may return what it does not need.
  const balances = await deps.money.balances([caller.account]);
  const balanceNanoUsd = balances.get(caller.account) ?? 0n;
  if (balanceNanoUsd < bound.minNanoUsd) throw insufficientBalance(insufficientText(bound, balanceNanoUsd));
}

/** Returns a bound that covers all of these. Errors about the balance describe the one with the largest minimum hold. */
function dearest(bounds: readonly Bound[]): Bound {
  const demanding = bounds.reduce((most, each) => (each.minNanoUsd > most.minNanoUsd ? each : most));
  const maxNanoUsd = bounds.reduce((most, each) => (each.maxNanoUsd > most ? each.maxNanoUsd : most), 0n);
  return { ...demanding, maxNanoUsd };
}

/**
 * Runs the checks of a paid call, cheapest first; each throws its own error. An admitted call has its tokens taken and its
 * money held. A refused call has nothing held; the caller of this function releases its slot with any tokens taken.
 */
export async function admit(deps: AdmissionDeps, request: AdmissionRequest): Promise<Admitted> {
  const { call, slot, route, requestId } = request;
  const { caller } = slot;
  const checked = request.checked ?? (await check(deps, { call, route, caller }));
  const { model } = checked.targets[0];
  const bound = request.isInBatch ? boundInBatch(deps, checked) : checked.bound;
  const tokens = checked.tokens - slot.takenTokens;
  const entry = { account: caller.account, key: caller.keyId, requestId, endpoint: route.endpoint, model: model.id };

  const expiresAt = request.deadlineAt + holdMarginMs;
  async function take(call: CallHold): Promise<Held> {
    const [first] = checked.targets;
    if (request.isLeased && !isBudgeted(caller)) return holdFromLease(request.leaseFor?.(first) ?? deps.leases, call);
    const { instance } = deps;
    const job = request.isLeased ? undefined : { ownJob: true as const };
    return { heldNanoUsd: await deps.money.holdForCall({ ...call, instance, ...job }) };
  }

  async function holdAndTake(): Promise<Held> {
    const taking = tokens > 0 ? deps.keys.takeTokens(slot, tokens) : Promise.resolve();
    // A refusal is unlikely far from the limit, so the hold need not wait for it.
    if (tokens > slot.rateLimits.tokens.remaining / 2) await taking;
    const [taken, holding] = await Promise.allSettled([taking, hold(take, { ...entry, expiresAt, bound })]);
    if (holding.status === "rejected") throw holding.reason;
    if (taken.status === "rejected") await refuseHeld(holding.value, taken.reason);
    return holding.value;
  }

  /** The hold is written first, so that a recount of the budget includes the call. */
  async function holdThenTake(): Promise<Held> {
    const remaining = await deps.keys.budgetRemaining(slot, bound.minNanoUsd);
    const isLess = remaining !== undefined && remaining < bound.maxNanoUsd;
    const held = await hold(take, { ...entry, expiresAt, bound: isLess ? { ...bound, maxNanoUsd: remaining } : bound });
    await deps.keys.takeTokens(slot, tokens, held.heldNanoUsd).catch((error: unknown) => refuseHeld(held, error));
    return held;
  }

  async function refuseHeld(held: Held, reason: unknown): Promise<never> {
    await release(deps, entry, held, toServiceError(reason).code);
    throw reason;
  }

  const free: Held = { heldNanoUsd: 0n };
  const held = route.isFree ? free : await (isBudgeted(caller) ? holdThenTake() : holdAndTake());
  const admittedAt = ({ bound: own, ...target }: BoundTarget): AdmittedTarget => {
    const outputCap = route.isFree ? 0 : request.isInBatch ? own.outputCap : own.capFor(held.heldNanoUsd);
    const isCapDefault = call.size.outputCap === undefined && outputCap === own.outputCap;
    return { ...target, outputCap, isCapDefault, inputBound: own.inputTokens };
  };
  const [first, ...rest] = checked.targets;
  const targets = [admittedAt(first), ...rest.map(admittedAt)] as const;
  const maxTokens = Math.max(...targets.map((each) => each.inputBound + each.outputCap * call.size.choices));
  return { ...held, targets, maxTokens, inputEstimate: checked.inputEstimate };
}

type CheckedUploads = Awaited<ReturnType<Files["uploads"]["check"]>>;

/** Adds the upload's type and size to a part that names one. */
function withUpload(part: MediaPart, uploads: FileSizes): MediaPart {
  const upload = part.upload === undefined ? undefined : uploads.get(part.upload);
  return upload ? { ...part, content: upload.kind, bytes: upload.bytes } : part;
}

/** The maximum cost of the call. The sizes of its uploads bound what they count as. */
function boundOf(
  { catalog }: Pick<AdmissionDeps, "catalog">,
  tier: Caller["tier"],
  { model, input }: Target,
  call: ParsedCall,
  uploads: FileSizes,
): Bound {
  if (!input) {
    const parts = call.size.parts.map((part) => withUpload(part, uploads));
    return catalog.bound(model, { ...call.size, parts }, tier);
  }
  const bytes = new Map([...uploads].map(([id, upload]) => [id, upload.bytes]));
  return catalog.boundOfUnits(model, input, catalog.units(model, input, bytes), tier);
}

async function holdFromLease(leases: Pick<Leases, "hold">, call: CallHold): Promise<Held> {
  const leased = await leases.hold(call);
  return { heldNanoUsd: leased.heldNanoUsd, leased };
}

/** Holds the call's maximum cost or, if the caller set no cap, as much of it as the balance covers. */
export function hold(
  take: (call: CallHold) => Promise<Held>,
  call: Omit<CallHold, "maxNanoUsd" | "minNanoUsd" | "insufficientText"> & { readonly bound: Bound },
) {
  const { bound, ...target } = call;
  const { maxNanoUsd, minNanoUsd } = bound;
  return take({
    ...target,
    maxNanoUsd,
    minNanoUsd,
    insufficientText: (availableNanoUsd) => insufficientText(bound, availableNanoUsd),
  });
}

/** Returns the hold of a call that is refused after all. */
async function release(
  { money, log }: Pick<AdmissionDeps, "money" | "log">,
  entry: Pick<CallHold, "account" | "key" | "requestId" | "endpoint" | "model">,
  { heldNanoUsd, leased }: Held,
  error: string,
): Promise<void> {
  if (leased) return leased.end(0n);
  const refused = { ...entry, heldNanoUsd, totalMs: 0, signal: AbortSignal.timeout(releaseMs) };
  await money
    .release(refused, { status: "failed", error })
    .catch((cause: unknown) =>
      log.warn({ err: cause, ...entry }, "a hold could not be released; the sweeper will release it"),
    );
}

/** Explains what the input can cost and, if the caller named a cap, how many output tokens the balance covers. */
function insufficientText(bound: Bound, availableNanoUsd: bigint): string {
  const { maxNanoUsd, inputNanoUsd, outputCap, isCapNamed } = bound;
  const balance = `the balance has ${formatUsd(availableNanoUsd)}.`;
  if (outputCap === 0) return `The balance is too low. The call can cost ${formatUsd(maxNanoUsd)} USD; ${balance}`;
  const input = `The balance is too low. The input alone can cost ${formatUsd(inputNanoUsd)} USD; ${balance}`;
  if (!isCapNamed) return input;
  return `${input} You asked for up to ${outputCap} tokens; the balance covers ${bound.capFor(availableNanoUsd)}.`;
}
