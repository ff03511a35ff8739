import type { MockProvider } from "./mock-provider.ts";
import { errorOf } from "./upstreams-setup.ts";

/**
 * Calls, and disconnects as soon as the provider has the request. Returns whether the caller gets its own reason, and
 * the provider's connection is aborted.
 */
export async function leave(
  mock: Pick<MockProvider, "request">,
  ask: (signal: AbortSignal) => Promise<unknown>,
): Promise<{ readonly hearsWhy: boolean; readonly isCut: boolean }> {
  const caller = new AbortController();
  const answer = errorOf(ask(caller.signal));
  const request = await mock.request(0);
  const reason = new Error("disconnected");
  caller.abort(reason);
  const hearsWhy = (await answer) === reason;
  await request.closed;
  return { hearsWhy, isCut: request.aborted };
}

export const letGo = { hearsWhy: true, isCut: true } as const;
