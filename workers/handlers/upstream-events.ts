import type { Catalog } from "#catalog";
import { bestStates, type KnownWorker, lastFailureOf } from "#jobs";
import type { Uses } from "#platform/uses";
import { attemptsAt, type Traffic } from "#traffic";
import { type EventType, type NewEvent, type Notice, operatorAccount, type Webhooks } from "#webhooks";

/**
 * The events of upstreams. An upstream is down once attempts of the last minutes have failed and none has succeeded, which
 * holds whatever the circuit breakers of the workers do meanwhile, and its key is refused if no worker has one that the
 * provider accepts. It has recovered once an attempt succeeds, or the key is accepted.
 *
 * The record that these events follow from is the operator's last notice about the upstream. Its id tells the next event
 * apart from those before it, so that a crash repeats the same event.
 */
interface UpstreamEventDeps extends Uses<"clock"> {
  readonly catalog: Pick<Catalog, "upstreams">;
  readonly readWorkers: () => Promise<readonly KnownWorker[]>;
  /** Attempts by minute; the last item is the current one. */
  readonly readAttempts: () => ReturnType<Traffic["readUpstreams"]>;
  readonly webhooks: Pick<Webhooks, "record" | "notices">;
  /** The account whose endpoints receive the events, too. */
  readonly operatorEventsAccount: string | undefined;
}

const minuteMs = 60_000;
const windowMinutes = 5;
const failuresToBeDown = 5;

type Attempts = Awaited<ReturnType<Traffic["readUpstreams"]>>;
type UpstreamEvent = Extract<EventType, `upstream.${string}`>;

/** The last minutes, beginning with that of `since`. */
function recent(attempts: Attempts, now: number, since: number): Attempts {
  const minutes = Math.floor(now / minuteMs) - Math.floor(since / minuteMs) + 1;
  return attempts.slice(-Math.max(1, Math.min(windowMinutes, minutes)));
}

/** The event that its state now makes of its last notice. */
function nextEvent(
  id: string,
  { last, isRefused, attempts, now }: { last: Notice | undefined; isRefused: boolean; attempts: Attempts; now: number },
): UpstreamEvent | undefined {
  const before = last?.type ?? "upstream.recovered";
  if (isRefused) return before === "upstream.key_refused" ? undefined : "upstream.key_refused";
  if (before === "upstream.key_refused") return "upstream.recovered";
  const notedAt = (last?.created_at ?? 0) * 1_000;
  const sum = attemptsAt(id, recent(attempts, now, notedAt));
  const responds = [sum.total, sum.firstToken].some((times) => Object.keys(times).length > 0);
  if (before === "upstream.down") return responds ? "upstream.recovered" : undefined;
  // Failures in the minute of the last notice may belong to what has ended.
  const { failed } = attemptsAt(id, recent(attempts, now, notedAt + minuteMs));
  return !responds && failed >= failuresToBeDown && now - notedAt >= minuteMs ? "upstream.down" : undefined;
}

/** Announces upstreams that went down, whose keys are refused, or that have recovered. */
export async function watchUpstreams(deps: UpstreamEventDeps): Promise<void> {
  const { catalog, readWorkers, readAttempts, webhooks, operatorEventsAccount, clock } = deps;
  const [workers, attempts] = await Promise.all([readWorkers(), readAttempts()]);
  const states = bestStates(workers);
  const now = clock.now();
  for (const { id, provider } of catalog.upstreams.values()) {
    const state = states.get(id) ?? "no key";
    if (state === "no key") continue;
    const last = await webhooks.notices.latest(operatorAccount, id);
    const type = nextEvent(id, { last, isRefused: state === "key refused", attempts, now });
    if (!type) continue;
    const failure = lastFailureOf(workers, id);
    const data = {
      id,
      object: "upstream",
      provider,
      since: type === "upstream.recovered" && last ? last.created_at : Math.floor(now / 1_000),
      last_failure: failure ? { at: Math.floor(failure.at / 1_000), message: failure.message } : null,
    };
    const event = { type, objectId: id, occurrence: last?.id ?? "", createdAt: new Date(now), data: () => data };
    // The operator's notice comes last: until it is stored, the event is derived again.
    const owners = [...(operatorEventsAccount ? [operatorEventsAccount] : []), operatorAccount];
    for (const account of owners) await webhooks.record({ ...event, account } satisfies NewEvent);
  }
}
