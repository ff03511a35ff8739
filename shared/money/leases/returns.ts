import { sleep } from "#platform/clock";
import { retry } from "#platform/concurrency/retry";
import type { MoneyDeps } from "../deps.ts";
import type { LeaseClosing } from "./closing.ts";
import type { AccountLeases, Lease } from "./lease.ts";

const backoff = { firstMs: 100, maxMs: 5_000 };
/** A write without a response may still take effect within this time. */
const lateWriteMs = 10_000;

/** Returns to the balance what the leases of this instance do not need. `returning` lists the writes that do so. */
export function createReturns(
  deps: Pick<MoneyDeps, "accounts" | "clock" | "log"> & Pick<LeaseClosing, "closeOwnLease">,
) {
  const { accounts, closeOwnLease, clock, log } = deps;
  const stopping = new AbortController();

  function note({ returning }: AccountLeases, amount: bigint, write: Promise<unknown>): void {
    returning.set(write, amount);
    void write.finally(() => returning.delete(write));
  }

  /** Returns the amount that the lease does not need. If the write is lost, closing the lease returns it. */
  function giveBack(leases: AccountLeases, lease: Lease): void {
    const { account } = leases;
    const amount = lease.unusedNanoUsd;
    if (amount === 0n) return;
    lease.unusedNanoUsd = 0n;
    const path = `holds.${lease.id}.amount`;
    const update = { $inc: { available: amount, held: -amount, [path]: -amount } };
    const written = accounts.collection
      .updateOne({ _id: account, [path]: { $gte: amount } }, update)
      .catch((error: Error) => log.warn({ err: error.message, account }, "a lease could not return its unused amount"));
    note(leases, amount, written);
  }

  /** Stops drawing holds from the current lease. `mayArriveNanoUsd`: the write that takes it may still take effect. */
  function drain(leases: AccountLeases, mayArriveNanoUsd?: bigint): void {
    const lease = leases.current;
    if (!lease) return;
    leases.current = undefined;
    if (lease.openCalls.size === 0) return close(leases, lease, mayArriveNanoUsd);
    leases.draining.add(lease);
    giveBack(leases, lease);
  }

  /** Closes a lease whose calls have all ended. */
  function close(leases: AccountLeases, lease: Lease, mayArriveNanoUsd?: bigint): void {
    leases.draining.delete(lease);
    if (lease.stoodAt === undefined && mayArriveNanoUsd === undefined) return;
    const { signal } = stopping;
    const closed = retry({ clock, signal, backoff }, async () => {
      if (mayArriveNanoUsd !== undefined) await sleep(clock, lateWriteMs, signal);
      await closeOwnLease(leases.account, lease.id, lease.spentNanoUsd);
    }).catch((error: Error) =>
      log.warn({ err: error.message, lease: lease.id }, "a lease could not be closed; the sweeper will close it"),
    );
    note(leases, mayArriveNanoUsd ?? lease.unusedNanoUsd, closed);
  }

  return {
    giveBack,
    drain,
    close,
    /** Stops waiting for MongoDB. */
    abandon: () => stopping.abort(new Error("this process stops")),
  };
}
