import { type Batches, newProviderBatchId, type StoredBatch, type StoredLine } from "#batches";
import type { Catalog, Model } from "#catalog";
import type { ParsedCall } from "#formats";
import { isOwnUpstream, isTextPool, jobCatalog, type WorkerRegistry } from "#jobs";
import { type CallHold, capturableMs, type Leased, type Leases, longLeaseOf, type Money } from "#money";
import type { Uses } from "#platform/uses";
import type { ProviderKey } from "#provider-keys";
import { ownKeysAt } from "../admission/own-keys.ts";
import type { Target } from "../admission/targets.ts";
import type { PaidRoute } from "../paid-route.ts";

/** A provider gets no batch with less time than this, and its batch is given up when this is left. */
const leastMs = 3_600_000;
/** Lines are captured within this time after the batch's expiry. */
const marginMs = 1_800_000;
/** A batch is submitted when it has this many lines or bytes, or at this age. */
const maxLines = 5_000;
const maxBytes = 32 * 1024 * 1024;
const maxAgeMs = 60_000;

export interface ProviderLinesDeps extends Uses<"clock"> {
  readonly batches: Pick<Batches, "providerBatches">;
  readonly catalog: Pick<Catalog, "list" | "find" | "named">;
  readonly money: Pick<Money, "growLongLease" | "account">;
  readonly registry: Pick<WorkerRegistry, "hasKey">;
}

interface Collecting {
  readonly id: string;
  readonly upstream: string;
  readonly model: string;
  readonly since: number;
  isStored: boolean;
  hasLease: boolean;
  lines: number;
  bytes: number;
}

type DeferredLine = Pick<StoredLine, "line" | "bytes" | "held" | "providerBatch">;

/** Where a line runs that a provider takes in a batch of its own. */
export interface Deferred {
  readonly providerBatch: string;
  readonly upstream: string;
  readonly discountBps: number;
  /** Unix milliseconds. */
  readonly deadlineAt: number;
  readonly leases: Pick<Leases, "hold">;
}

/**
 * Collects lines of a batch for batches of providers: those whose model has an upstream that the catalog gives a
 * `batch_discount_bps`. Each provider batch has a lease of its own, which grows with it and outlives this process.
 */
export function createProviderLines(
  { batches: { providerBatches }, catalog, money, registry, clock }: ProviderLinesDeps,
  { _id: batch, account, expiresAt, model }: StoredBatch,
  { job }: Pick<PaidRoute, "job">,
) {
  const collecting = new Map<string, Collecting>();
  const deadlineAt = expiresAt.getTime() + marginMs;
  const giveUpAt = new Date(expiresAt.getTime() - leastMs);
  const isText = isTextPool(jobCatalog[job].pool);

  const isFull = ({ lines, bytes }: Collecting) => lines >= maxLines || bytes >= maxBytes;
  const isDue = (each: Collecting) => isFull(each) || (each.lines > 0 && clock.now() - each.since >= maxAgeMs);

  function collectingFor(upstream: string, model: string): Collecting {
    const key = keyOf({ upstream, model });
    const found = collecting.get(key);
    if (found && !isFull(found)) return found;
    const begun = {
      id: newProviderBatchId(),
      upstream,
      model,
      since: clock.now(),
      isStored: false,
      hasLease: false,
      lines: 0,
      bytes: 0,
    };
    // The full one is sealed with its last lines.
    if (found) collecting.set(found.id, found);
    collecting.set(key, begun);
    return begun;
  }

  /** Hands over what is full or old, or everything. */
  async function seal({ all }: { readonly all: boolean }): Promise<void> {
    const due = [...collecting].filter(([, each]) => each.isStored && (all || isDue(each)));
    if (due.length === 0) return;
    for (const [key] of due) collecting.delete(key);
    await providerBatches.seal(
      { account, batch },
      due.map(([, { id }]) => id),
    );
  }

  /** Holds the maximum cost of lines, or gives it back. Returns false if the balance does not cover it. */
  async function change(each: Collecting, lines: readonly DeferredLine[], isGivenBack = false): Promise<boolean> {
    const sum = lines.reduce((total, { held }) => total + held, 0n);
    const nanoUsd = isGivenBack ? -sum : sum;
    const isFirst = !each.hasLease;
    const callsEndAt = deadlineAt + capturableMs;
    const changed = await money.growLongLease({ account, lease: longLeaseOf(each.id), isFirst, nanoUsd, callsEndAt });
    const sign = isGivenBack ? -1 : 1;
    if (!changed) return false;
    each.hasLease = true;
    each.lines += sign * lines.length;
    each.bytes += sign * lines.reduce((total, { bytes }) => total + bytes, 0);
    return true;
  }

  /** Holds the maximum cost of as many of the first lines as the balance covers. Returns those. */
  async function holdFirst(each: Collecting, lines: readonly DeferredLine[]): Promise<readonly DeferredLine[]> {
    const { id, upstream, model } = each;
    if (!each.isStored)
      await providerBatches.create({ _id: id, account, batch, upstream, model, job: jobOf(job), giveUpAt });
    each.isStored = true;
    for (let count = lines.length; count > 0; count = Math.floor(count / 2)) {
      const first = lines.slice(0, count);
      if (await change(each, first)) return first;
    }
    if (each.hasLease) return [];
    collecting.delete(keyOf(each));
    await providerBatches.remove({ account, _id: id });
    return [];
  }

  const servedBy = ({ upstreams }: Model, allowed?: readonly string[]) =>
    upstreams.find(
      ({ upstream, batchDiscountBps }) =>
        batchDiscountBps !== undefined && (allowed?.includes(upstream) ?? true) && registry.hasKey(upstream),
    );
  const isInTime = () => clock.now() < giveUpAt.getTime();
  const isPlaceable = ({ uploads, features }: ParsedCall) =>
    isText && isInTime() && uploads.length === 0 && !features.has("file");

  return {
    /** Tells whether lines of the batch may be placed. */
    isPossible(): boolean {
      if (!isText || !isInTime()) return false;
      const models = model === undefined ? catalog.list() : [catalog.find(model) ?? []].flat();
      return models.some((each) => servedBy(each) !== undefined);
    },

    /** Tells whether a line is going to be placed, as far as it tells itself. `own`: the provider keys that it may use. */
    mayPlace(call: ParsedCall, own: readonly ProviderKey[]): boolean {
      const [name = call.model] = call.models?.map((each) => each.name) ?? [];
      const named = catalog.find(name) ?? catalog.named(name);
      if (named === undefined || ownKeysAt(own, named).length > 0) return false;
      return isPlaceable(call) && servedBy(named) !== undefined;
    },

    /** Returns undefined for a line that has to run by itself. */
    place({ model, upstreams }: Target, call: ParsedCall): Deferred | undefined {
      if (!isPlaceable(call)) return undefined;
      const shared = upstreams?.flatMap((each) => (isOwnUpstream(each) ? [] : [each]));
      // A provider's batch runs at the operator's account there.
      if (shared?.length !== upstreams?.length) return undefined;
      const served = servedBy(model, shared);
      if (!served) return undefined;
      const into = collectingFor(served.upstream, model.id);
      const lease = longLeaseOf(into.id);
      const hold = async ({ maxNanoUsd }: CallHold): Promise<Leased> => ({
        lease,
        heldNanoUsd: maxNanoUsd,
        end: () => {},
      });
      const { upstream, batchDiscountBps: discountBps = 0 } = served;
      return { providerBatch: into.id, upstream, discountBps, deadlineAt, leases: { hold } };
    },

    /**
     * Holds the maximum cost of lines in their order, as far as the balance covers it. Returns those whose cost is held, and
     * why the others' is not.
     */
    async hold(lines: readonly DeferredLine[]): Promise<{ held: ReadonlySet<DeferredLine>; refusal?: string }> {
      let until = Number.POSITIVE_INFINITY;
      const held = new Map<Collecting, readonly DeferredLine[]>();
      for (const each of collecting.values()) {
        const own = lines.filter(({ providerBatch, line }) => providerBatch === each.id && line < until);
        if (own.length === 0) continue;
        const first = await holdFirst(each, own);
        held.set(each, first);
        until = Math.min(until, own[first.length]?.line ?? until);
      }
      // Lines are taken in their order, so those after one that has to wait are not.
      for (const [each, own] of held) {
        const late = own.filter(({ line }) => line >= until);
        if (late.length > 0) await change(each, late, true);
      }
      const all = new Set([...held.values()].flat().filter(({ line }) => line < until));
      if (all.size === lines.length) return { held: all };
      const owner = await money.account(account);
      return { held: all, refusal: owner?.frozen ? "account_frozen" : "insufficient_balance" };
    },

    /** Tells whether something has to be handed over. */
    isDue: () => [...collecting.values()].some(isDue),
    seal,
  };
}

const keyOf = ({ upstream, model }: Pick<Collecting, "upstream" | "model">) => `${upstream} ${model}`;

const jobOf = (job: PaidRoute["job"]): "chat" | "embeddings" => (job === "embeddings" ? job : "chat");

export type ProviderLines = ReturnType<typeof createProviderLines>;
