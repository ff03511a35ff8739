import { noCapacity } from "#errors";
import { isDelivered, type OpenCall, type OpenCallDeps, poolOf } from "./open-call.ts";

export const shuttingDown = () => noCapacity("This instance is shutting down; repeat the call.", 1);

/** The calls that are open in this process, and the requests that may become calls. */
export function createCallRegistry(
  { registry, deliveries, keys, files, clock, log, observeCall }: OpenCallDeps,
  background: (what: string, call: OpenCall, work: Promise<unknown>) => void,
) {
  const calls = new Map<string, OpenCall>();
  const callsByAccount = new Map<string, number>();
  let onIdle: (() => void) | undefined;
  let arriving = 0;
  let isClosed = false;

  function resolveIfIdle(): void {
    if (arriving === 0 && calls.size === 0) onIdle?.();
  }

  function countCall({ payload: { account } }: OpenCall, change: 1 | -1): void {
    const count = (callsByAccount.get(account) ?? 0) + change;
    if (count > 0) callsByAccount.set(account, count);
    else callsByAccount.delete(account);
  }

  return {
    values: () => [...calls.values()],
    count: () => calls.size,
    /** The number of other open calls of its account. */
    others: ({ payload }: OpenCall): number => (callsByAccount.get(payload.account) ?? 1) - 1,

    /**
     * Registers a request that has arrived. A drain waits for it until the returned function is called, once it has been
     * submitted or refused. Throws 503 after the drain.
     */
    arrive: (): (() => void) => {
      if (isClosed) throw shuttingDown();
      arriving++;
      return () => {
        arriving--;
        resolveIfIdle();
      };
    },

    add(call: OpenCall): void {
      calls.set(call.payload.requestId, call);
      countCall(call, 1);
    },

    /**
     * Releases everything that the call took. Its cost has been captured by now, unless its work continues without this
     * process; then its body stays. `isCut`: this process stops before the caller has the answer, which then does not count
     * as delivered.
     */
    end(
      call: OpenCall,
      status: number,
      {
        code,
        workContinues = false,
        isCut = false,
      }: { code?: string | undefined; workContinues?: boolean; isCut?: boolean } = {},
    ): void {
      if (call.state.kind === "ended") return;
      call.state = { kind: "ended" };
      call.unsubscribe();
      call.unsent.close();
      call.recording?.end();
      const { requestId, account, keyId, endpoint, model, stream, acceptedAt } = call.payload;
      calls.delete(requestId);
      if (!isCut) deliveries.end(requestId, call.costNanoUsd);
      countCall(call, -1);
      const costNanoUsd = workContinues ? undefined : call.costNanoUsd;
      // Those of a job stay counted, although its slot ends before it.
      const usedTokens =
        call.detached && workContinues ? call.slot.takenTokens : Math.min(call.usedTokens, call.maxTokens);
      background("the slot of a key could not be released", call, keys.release(call.slot, { usedTokens, costNanoUsd }));
      if (call.queuedJob && !call.detached) registry.ended(poolOf(call));
      if (call.bodyStored && !workContinues)
        background("a stored body could not be deleted", call, files.deleteBody(requestId));
      if (call.cleanUp && !workContinues) background("the file of a call could not be deleted", call, call.cleanUp());
      const totalMs = clock.now() - acceptedAt;
      const firstEventMs = call.firstEventAt === undefined ? undefined : call.firstEventAt - acceptedAt;
      call.trace?.end(status, code, call.firstEventAt);
      observeCall({ endpoint, admitted: { model, totalMs, firstEventMs, providerMs: call.providerMs }, status, code });
      const outcome = { status, code, disconnected: !isDelivered(call), totalMs };
      const ids = call.trace?.span.ids;
      log.info({ requestId, account, key: keyId, endpoint, model, stream, ...outcome, ...ids }, "call");
      resolveIfIdle();
    },

    /** Resolves when nothing is open or arriving. */
    idle: (): Promise<void> =>
      new Promise((resolve) => {
        onIdle = resolve;
        resolveIfIdle();
      }),

    /** Refuses all requests from now on. */
    close(): void {
      isClosed = true;
    },
  };
}
