import { rateLimited } from "#errors";
import type { Slot } from "#keys";
import type { Money } from "#money";

const maxInFlight = 100;

/** Free calls share the slots and queues of paid ones, so a key whose account has no balance may have fewer in flight. */
export async function limitFreeCalls(
  { money }: { readonly money: Pick<Money, "balances"> },
  { inFlight, caller: { account } }: Slot,
): Promise<void> {
  if (inFlight < maxInFlight) return;
  const balances = await money.balances([account]);
  if ((balances.get(account) ?? 0n) > 0n) return;
  throw rateLimited(`A key without a balance has at most ${maxInFlight} calls in flight.`, 1);
}
