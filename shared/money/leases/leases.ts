import { accountFrozen, insufficientBalance, type ServiceError } from "#errors";
import { atMost, sleep } from "#platform/clock";
import { groupCommit } from "#platform/concurrency/group-commit";
import type { MoneyDeps } from "../deps.ts";
import { type CallHold, onItsWay, unavailable } from "../holds.ts";
import { createRefusedAccounts } from "../refused-accounts.ts";
import { assertAmount } from "../usd.ts";
import { instanceOf, type LeaseClosing } from "./closing.ts";
import {
  type AccountLeases,
  type AccountState,
  createSpending,
  growth,
  isWorthWaiting,
  type Lease,
  type Leased,
  leasesOfOthers,
  movedExpiry,
  type OtherLease,
  type Registration,
} from "./lease.ts";
import type { ReturnRequests } from "./return-requests.ts";
import { createReturns } from "./returns.ts";

const groupLimit = 500;
const longestLeaseMs = 60_000;
const idleMs = 2_000;
const tickMs = 500;
/** Pauses in which other instances return unused amounts and calls end. */
const pausesMs = [50, 100];
/** Tries of a call that the last read of its account covers, or would with what is on its way back. */
const moreTries = 5;
/** The longest wait for what instances return. */
const returnMs = 500;
/** Limits how long `settleIdle` waits, because leases are not closed while MongoDB is unavailable. */
const settleMs = 1_000;

/** No advance is taken unless this many calls are affordable. */
const affordableCalls = 20n;

/** The id contains the instance, for the sweeper. */
const idOf = (instance: string, count: number) => `lease:${instance}:${count}`;

/**
 * The leases of this instance (docs/adr/0012). Holds are drawn from a lease for a minute, or until it has had no call
 * for two seconds. While it only waits for running calls, it returns what they do not need. The first write of its id
 * requires it to be absent, every later one to be present, so the outcome of a write without a response does not matter:
 * no more holds are drawn from the lease, and closing it returns whatever the document holds for it.
 */
export function createLeases(
  deps: MoneyDeps & {
    closeOwnLease: LeaseClosing["closeOwnLease"];
    registration: Registration;
    returnRequests: ReturnRequests;
  },
) {
  const { accounts, ledger, mongo, registration, returnRequests, observer, clock, log } = deps;
  const { collection } = accounts;
  const { instance } = registration;
  const byAccount = new Map<string, AccountLeases>();
  const { giveBack, drain, close, abandon } = createReturns(deps);
  const refusedBefore = createRefusedAccounts();
  let taken = 0;

  function leasesOf(account: string): AccountLeases {
    const existing = byAccount.get(account);
    if (existing) return existing;
    const leases = {
      account,
      current: undefined,
      draining: new Set<Lease>(),
      returning: new Map<Promise<unknown>, bigint>(),
      waiting: 0,
      spending: createSpending(clock),
    };
    byAccount.set(account, leases);
    return leases;
  }

  /**
   * Returns true if holds may be drawn from the lease without asking MongoDB: MongoDB is reachable, and the sweeper
   * cannot have closed the lease.
   */
  function stands({ stoodAt }: Lease): boolean {
    const since = registration.since();
    return stoodAt !== undefined && since !== undefined && stoodAt >= since && mongo.upSince() !== undefined;
  }

  function give(leases: AccountLeases, lease: Lease, requestId: string, heldNanoUsd: bigint): Leased {
    lease.unusedNanoUsd -= heldNanoUsd;
    lease.lastUsedAt = clock.now();
    function end(costNanoUsd: bigint): void {
      if (!lease.openCalls.delete(requestId)) return;
      lease.unusedNanoUsd += heldNanoUsd - costNanoUsd;
      lease.spentNanoUsd += costNanoUsd;
      lease.lastUsedAt = clock.now();
      leases.spending.add(costNanoUsd);
      if (lease.openCalls.size === 0 && leases.draining.has(lease)) close(leases, lease);
    }
    lease.openCalls.set(requestId, end);
    return { lease: lease.id, heldNanoUsd, end };
  }

  /** Serves the calls that the lease covers, in order. With `partly`, holds may be smaller than the maximum cost. */
  function giveInOrder(
    leases: AccountLeases,
    group: readonly CallHold[],
    partly: boolean,
    given: Map<CallHold, Leased>,
  ) {
    const lease = leases.current;
    if (!lease || !stands(lease)) return;
    for (const request of group) {
      const { maxNanoUsd, minNanoUsd } = request;
      const amount = partly && lease.unusedNanoUsd < maxNanoUsd ? lease.unusedNanoUsd : maxNanoUsd;
      const fits = amount >= minNanoUsd && amount <= lease.unusedNanoUsd && request.expiresAt <= lease.callsEndAt;
      if (!fits || given.has(request)) continue;
      given.set(request, give(leases, lease, request.requestId, amount));
    }
  }

  /**
   * Takes what the group needs, or as much of it as the account has, if that serves at least one of its calls. Returns
   * false if it does not. Throws 503 if the outcome is unknown.
   */
  async function grow(leases: AccountLeases, group: readonly CallHold[], partly: boolean): Promise<boolean> {
    const now = clock.now();
    const expiresAt = Math.max(...group.map((request) => request.expiresAt));
    leases.current ??= {
      id: idOf(instance, taken++),
      takenAt: now,
      unusedNanoUsd: 0n,
      spentNanoUsd: 0n,
      openCalls: new Map(),
      lastUsedAt: now,
      callsEndAt: expiresAt + longestLeaseMs,
      stoodAt: undefined,
    };
    const lease = leases.current;
    const isFirst = lease.stoodAt === undefined;
    const { unusedNanoUsd } = lease;
    const missing = (amount: bigint) => (amount > unusedNanoUsd ? amount - unusedNanoUsd : 0n);
    const needNanoUsd = missing(group.reduce((sum, { maxNanoUsd }) => sum + maxNanoUsd, 0n));
    const leastNanoUsd = missing(least(group.map(({ maxNanoUsd, minNanoUsd }) => (partly ? minNanoUsd : maxNanoUsd))));
    const largestNanoUsd = -least(group.map(({ maxNanoUsd }) => -maxNanoUsd));
    const callsEndAt = Math.max(lease.callsEndAt, expiresAt);
    const sentAt = performance.now();
    const update = growth(lease.id, {
      isFirst,
      needNanoUsd,
      aheadNanoUsd: 2n * leases.spending.inFiveSeconds(),
      richNanoUsd: needNanoUsd + affordableCalls * largestNanoUsd,
      now,
      callsEndAt: new Date(callsEndAt),
    });
    const path = `holds.${lease.id}` as const;
    const filter = {
      _id: leases.account,
      frozen: false,
      available: { $gte: leastNanoUsd },
      [path]: { $exists: !isFirst },
    };
    const options = { returnDocument: "after", projection: { [`${path}.granted`]: 1 } } as const;
    const document = await collection.findOneAndUpdate(filter, update, options).catch((error: unknown) => {
      log.warn({ err: error, account: leases.account }, "the outcome of growing a lease is unknown");
      drain(leases, isFirst ? needNanoUsd : undefined);
      return unavailable(error);
    });
    if (!document) {
      if (isFirst) leases.current = undefined;
      return false;
    }
    // The lease may have begun to drain in the meantime. The amount is then returned with the rest of it.
    lease.unusedNanoUsd += document.holds[lease.id]?.granted ?? 0n;
    lease.callsEndAt = callsEndAt;
    lease.stoodAt = sentAt;
    return true;
  }

  /** Checks that the sweeper, which may have considered this process dead, has not closed the lease. */
  async function confirm(leases: AccountLeases, lease: Lease): Promise<void> {
    const sentAt = performance.now();
    const filter = { _id: leases.account, [`holds.${lease.id}`]: { $exists: true } };
    const confirmed = collection.updateOne(filter, [{ $set: movedExpiry(lease.id, clock.now()) }]);
    const { matchedCount } = await confirmed.catch(unavailable);
    if (matchedCount === 1) lease.stoodAt = sentAt;
    else if (leases.current === lease) leases.current = undefined;
  }

  async function read(leases: AccountLeases): Promise<AccountState> {
    const { account } = leases;
    for (const lease of leases.draining) giveBack(leases, lease);
    const returning = sumOf(leases.returning.values());
    const [state] = await collection
      .aggregate<Omit<AccountState, "returning">>([
        { $match: { _id: account } },
        { $project: { frozen: 1, available: 1, held: 1, others: leasesOfOthers(instance) } },
      ])
      .toArray()
      .catch(unavailable);
    if (!state) throw new Error(`there is no account ${account}`);
    return { ...state, returning };
  }

  /** Has the instances with these leases return what they do not use, and adds those that have to `returned`. */
  async function recallFrom(account: string, others: readonly OtherLease[], returned: Set<string>): Promise<void> {
    const instances = new Set(others.map(({ lease }) => instanceOf(lease)));
    if (instances.size === 0) return;
    for (const each of await returnRequests.recall(account, [...instances], returnMs)) returned.add(each);
  }

  /** The sum that instances without an answer may still return. */
  const unreturned = (others: readonly OtherLease[], returned: ReadonlySet<string>): bigint =>
    sumOf(others.filter(({ lease }) => !returned.has(instanceOf(lease))).map(({ amount }) => amount));

  async function holdGroup(account: string, group: readonly CallHold[]): Promise<(Leased | Error)[]> {
    const given = new Map<CallHold, Leased>();
    try {
      return await giveOrRefuse(leasesOf(account), group, given);
    } catch (error) {
      // All of them are refused.
      for (const leased of given.values()) leased.end(0n);
      throw error;
    }
  }

  async function giveOrRefuse(
    leases: AccountLeases,
    group: readonly CallHold[],
    given: Map<CallHold, Leased>,
  ): Promise<(Leased | Error)[]> {
    const { account } = leases;
    const waiting = () => group.filter((request) => !given.has(request));
    // Nothing is sent while MongoDB is unavailable, so that no outcome is unknown.
    if (mongo.upSince() === undefined) await mongo.ping().catch(unavailable);
    if (registration.since() === undefined) await registration.renew().catch(unavailable);
    if (leases.current && !stands(leases.current)) await confirm(leases, leases.current);
    // An account that was refused before costs one read per group and no write.
    let state = refusedBefore.has(account) ? await read(leases) : undefined;

    const availableNanoUsd = () => (state?.available ?? 0n) + (leases.current?.unusedNanoUsd ?? 0n);
    /** Returns true if the account could pay for one of the waiting calls when it was last read. */
    const canPay = (partly: boolean, moreNanoUsd = 0n) =>
      state?.frozen === false &&
      waiting().some((call) => availableNanoUsd() + moreNanoUsd >= (partly ? call.minNanoUsd : call.maxNanoUsd));

    /** The instances that have returned what they do not use. */
    const returned = new Set<string>();
    function refusalOf(call: CallHold): ServiceError {
      if (state?.frozen) return accountFrozen();
      if (availableNanoUsd() + unreturned(state?.others ?? [], returned) >= call.minNanoUsd) return onItsWay();
      return insufficientBalance(call.insufficientText(availableNanoUsd()));
    }

    async function serve(partly: boolean): Promise<void> {
      giveInOrder(leases, group, partly, given);
      const rest = waiting();
      if (rest.length === 0) return;
      if ((!state || canPay(partly)) && (await grow(leases, rest, partly))) giveInOrder(leases, rest, partly, given);
      if (waiting().length > 0) state = await read(leases);
    }

    await serve(false);
    for (const pauseMs of pausesMs) {
      if (!state || !waiting().some((request) => isWorthWaiting(state as AccountState, request))) break;
      await Promise.all([recallFrom(account, state.others, returned), sleep(clock, pauseMs)]);
      state = undefined;
      await serve(false);
    }
    if (waiting().length > 0) await serve(true);
    // A refusal is decided by the read that it quotes: what came back between the last try and that read is tried, too, and
    // what is on its way back is waited for.
    for (let more = 0; canPay(true, state?.returning); more++) {
      if (more === moreTries) return unavailable(new Error("the balance changed during each try"));
      if (!canPay(true)) await atMost(clock, returnMs, Promise.all(leases.returning.keys()));
      await serve(true);
    }
    if (registration.since() === undefined || mongo.upSince() === undefined)
      return unavailable(new Error("the registration lapsed, or MongoDB is unavailable"));
    refusedBefore.remember(account, waiting().length > 0);
    return group.map((request) => given.get(request) ?? refusalOf(request));
  }

  const commit = groupCommit<CallHold, Leased>({
    limit: groupLimit,
    observe: observer?.writes.leases,
    write: holdGroup,
  });

  function tick(): void {
    const now = clock.now();
    for (const leases of byAccount.values()) {
      const { current, waiting, draining, returning, account } = leases;
      if (current && waiting === 0) {
        const isQuiet = now - current.lastUsedAt >= idleMs;
        if (now - current.takenAt >= longestLeaseMs || (isQuiet && current.openCalls.size === 0)) drain(leases);
        else if (isQuiet) giveBack(leases, current);
      }
      for (const lease of draining) giveBack(leases, lease);
      const isUsed = leases.current || draining.size > 0 || returning.size > 0 || leases.waiting > 0;
      if (!isUsed) byAccount.delete(account);
    }
  }
  const stopTicks = clock.every(tickMs, tick);

  const ownLeases = (account?: string): AccountLeases[] =>
    [...(account === undefined ? byAccount.values() : [byAccount.get(account)])].filter(
      (leases) => leases !== undefined,
    );

  /** Resolves once MongoDB has what is returned. */
  async function returnUnused(leases: AccountLeases, from: string): Promise<void> {
    const { current, draining, waiting } = leases;
    for (const lease of draining) giveBack(leases, lease);
    // If two instances both wait, one receives what the other does not use.
    if (current && (waiting === 0 || instance >= from)) {
      if (current.openCalls.size === 0 && waiting === 0) drain(leases);
      else giveBack(leases, current);
    }
    await Promise.all(leases.returning.keys());
  }
  returnRequests.onAsked(({ account, from }) =>
    Promise.all(ownLeases(account).map((leases) => returnUnused(leases, from))),
  );

  /**
   * Holds the maximum cost of a waiting call, or all that the account has if that is less. Throws 402 only after other
   * instances were asked to return unused amounts, 403 if the account is frozen, and 503.
   */
  async function hold(request: CallHold): Promise<Leased> {
    assertAmount(request.maxNanoUsd, "maxNanoUsd");
    assertAmount(request.minNanoUsd, "minNanoUsd");
    const leases = leasesOf(request.account);
    const { current } = leases;
    const mayGive = current && leases.waiting === 0 && request.expiresAt <= current.callsEndAt;
    if (mayGive && current.unusedNanoUsd >= request.maxNanoUsd && stands(current))
      return give(leases, current, request.requestId, request.maxNanoUsd);
    leases.waiting += 1;
    try {
      return await commit(request.account, request.requestId, request);
    } finally {
      leases.waiting -= 1;
    }
  }

  /** Closes the leases whose calls are all captured, even if the news of a capture has not arrived yet. */
  async function closeIdle(account?: string): Promise<void> {
    const asked = ownLeases(account);
    const openOf = ({ current, draining }: AccountLeases) => [...(current ? [current] : []), ...draining];
    const keysOf = (leases: AccountLeases) =>
      openOf(leases).flatMap(({ openCalls }) => [...openCalls.keys()].map((_id) => ({ account: leases.account, _id })));
    const keys = asked.flatMap(keysOf);
    const captured = keys.length > 0 ? await ledger.readCommitted(keys) : new Map<string, never>();
    for (const { openCalls } of asked.flatMap(openOf))
      for (const [requestId, end] of openCalls) {
        const entry = captured.get(requestId);
        if (entry) end(-entry.amount);
      }
    for (const leases of asked) if (leases.current?.openCalls.size === 0 && leases.waiting === 0) drain(leases);
    await Promise.all(asked.flatMap(({ returning }) => [...returning.keys()]));
  }

  return {
    hold,
    /** Has all instances return what they do not use of an account. Resolves to what those may return that did not. */
    async recall(account: string): Promise<bigint> {
      const leases = leasesOf(account);
      const returned = new Set<string>();
      const { others } = await read(leases);
      const own = atMost(clock, returnMs, returnUnused(leases, instance));
      await Promise.all([recallFrom(account, others, returned), own]);
      return unreturned(others, returned) + sumOf(leases.returning.values());
    },
    /**
     * Makes balances current for a reader: closes the leases that have no calls here, and asks the other instances to
     * do the same. Applies to one account or to all.
     */
    async settleIdle(account?: string): Promise<void> {
      returnRequests.ask(account);
      await atMost(clock, settleMs, closeIdle(account));
    },
    /** Call it after the last call. The sweeper closes leases whose calls are not captured. */
    async stop(): Promise<void> {
      stopTicks();
      await closeIdle();
    },
    /** Stops waiting for MongoDB. */
    abandon,
  };
}

export type Leases = ReturnType<typeof createLeases>;

const sumOf = (amounts: Iterable<bigint>): bigint => [...amounts].reduce((sum, each) => sum + each, 0n);
const least = (amounts: readonly bigint[]): bigint => amounts.reduce((low, each) => (each < low ? each : low));
