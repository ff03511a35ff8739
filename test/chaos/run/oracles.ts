import { isJson } from "./plan.ts";
import type { BookEntry, CallRecord, RunLog } from "./run-log.ts";

/** The invariants of a run. */

/** The violations of each invariant: none, if all is well. */
export type Findings = Readonly<Record<keyof typeof oracles, readonly string[]>>;

interface Charges {
  readonly chargedNanoUsd: bigint;
  readonly shortfallNanoUsd: bigint;
  readonly entries: number;
}

/** An upload's cost is one of storage. */
const isCost = ({ kind }: BookEntry) => kind === "usage" || kind === "storage";

function byRequest(entries: readonly BookEntry[]): ReadonlyMap<string, Charges> {
  const charges = new Map<string, Charges>();
  for (const entry of entries) {
    const { id, amountNanoUsd, shortfallNanoUsd } = entry;
    if (!isCost(entry) && entry.kind !== "refund") continue;
    const requestId = id.replace(/^refund:/, "");
    const before = charges.get(requestId);
    charges.set(requestId, {
      chargedNanoUsd: (before?.chargedNanoUsd ?? 0n) - amountNanoUsd,
      shortfallNanoUsd: (before?.shortfallNanoUsd ?? 0n) + shortfallNanoUsd,
      entries: (before?.entries ?? 0) + (isCost(entry) ? 1 : 0),
    });
  }
  return charges;
}

function grouped<T>(items: readonly T[], keyOf: (item: T) => string | undefined): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (key !== undefined) groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return groups;
}

/** Indexes that the oracles share. */
function indexed(log: RunLog) {
  const charges = byRequest(log.entries);
  return {
    ...log,
    charges,
    runsOf: grouped(log.runs, ({ marker }) => marker),
    chargeOf: ({ requestId }: CallRecord) => charges.get(requestId ?? ""),
  };
}
type Indexed = ReturnType<typeof indexed>;

const uploadBillNanoUsd = 62_500_000n;
const mostBytes = 700_000_000;

/** The bill for a whole response; undefined if the provider gave no usage. */
function billOf({ runsOf }: Indexed, { marker, kind, behavior }: CallRecord): bigint | undefined {
  if (kind === "upload") return uploadBillNanoUsd;
  if (behavior === "noUsage") return undefined;
  // If one upstream failed, the next one answered.
  return runsOf.get(marker)?.findLast(({ billNanoUsd }) => billNanoUsd > 0n)?.billNanoUsd ?? 0n;
}

function mayCost({ runsOf }: Indexed, { marker, kind, behavior }: CallRecord): bigint {
  if (kind === "upload") return uploadBillNanoUsd;
  const bills = (runsOf.get(marker) ?? []).map(({ mayBillNanoUsd }) => mayBillNanoUsd);
  const most = bills.reduce((max, each) => (each > max ? each : max), 0n);
  // If the provider gives no usage, it is estimated from the bytes.
  return behavior === "noUsage" ? 2n * most : most;
}

const graceMs = 1_000;
const isExcused = ({ faults }: Indexed, call: CallRecord) =>
  faults.some(
    ({ instance, startedMs, endedMs }) =>
      instance === call.instance && call.startedMs < endedMs + graceMs && call.endedMs > startedMs - graceMs,
  );

const isJsonWithoutKey = ({ kind, idempotencyKey }: CallRecord) => isJson(kind) && idempotencyKey === undefined;
const killOf = ({ faults }: Pick<RunLog, "faults">, call: CallRecord) =>
  faults.find(({ kind, instance }) => kind === "api killed" && instance === call.instance);

/** Undelivered JSON responses of a killed API process. */
export const cutByDeath = (log: Pick<RunLog, "calls" | "faults">) =>
  log.calls.filter((call) => call.outcome === "none" && isJsonWithoutKey(call) && killOf(log, call));

/** The API process may have been killed before it recorded the delivery; the call is then free. */
const isForgiven = (log: Pick<RunLog, "faults">, call: CallRecord) =>
  isJsonWithoutKey(call) && call.endedMs > (killOf(log, call)?.startedMs ?? Number.POSITIVE_INFINITY) - graceMs;

/** Accounts whose callers may have abandoned calls. */
const leavers = (log: Indexed) =>
  new Set(
    log.calls.flatMap(({ outcome, kind, account }) => (outcome === "disconnected" && isJson(kind) ? [account] : [])),
  );

/** Charges for responses that nobody received. */
export function chargedAfterDeath(log: RunLog): readonly BookEntry[] {
  const known = indexed(log);
  const killed = new Set(log.faults.flatMap(({ kind, instance }) => (kind === "api killed" ? [instance] : [])));
  const byId = new Map(log.calls.map((call) => [call.requestId, call]));
  const named = log.entries.flatMap(({ id, deliveredBy }) => {
    const call = byId.get(id);
    return call && deliveredBy !== undefined && killed.has(call.instance) ? [deliveredBy] : [];
  });
  const dead = new Set(named);
  const leaving = leavers(known);
  return log.entries.filter(
    ({ id, account, deliveredBy }) =>
      deliveredBy !== undefined &&
      dead.has(deliveredBy) &&
      (byId.get(id)?.outcome ?? "none") === "none" &&
      !leaving.has(account) &&
      (known.charges.get(id)?.chargedNanoUsd ?? 0n) > 0n,
  );
}

const show = (call: CallRecord, more = "") =>
  `${call.marker} ${call.kind} ${call.behavior} ${call.requestId ?? "without id"} ${call.outcome} ${call.status ?? ""} ${call.code ?? ""} ${call.failure ?? ""} ${more}`.trim();

const callsWhere = (log: Indexed, isBroken: (call: CallRecord) => string | false) =>
  log.calls.flatMap((call) => {
    const why = isBroken(call);
    return why === false ? [] : [show(call, why)];
  });

/** Each oracle returns its violations. */
export const oracles = {
  /** Only callers of an API process that was killed or cut off may get no response. */
  unanswered: (log: Indexed) =>
    callsWhere(log, (call) => call.outcome === "none" && !isExcused(log, call) && `at ${call.instance}`),
  hung: (log: Indexed) => callsWhere(log, ({ outcome, instance }) => outcome === "hung" && `at ${instance}`),
  /** No upstream receives a call twice. */
  "double runs": (log: Indexed) => {
    const sent = grouped(log.calls, ({ marker }) => marker);
    return [...grouped(log.runs, ({ marker, upstream }) => `${marker} at ${upstream}`)].flatMap(([at, runs]) => {
      const most = sent.get(runs[0]?.marker ?? "")?.length ?? 0;
      return runs.length > most ? [`${at}: asked ${runs.length} times for ${most} requests`] : [];
    });
  },
  /** A complete response is charged by its usage. */
  "prompts counted without need": ({ calls, counts }: Indexed) => {
    const counted = grouped(counts, ({ marker }) => marker);
    const ended = grouped(calls, ({ marker }) => marker);
    return [...counted].flatMap(([marker, { length }]) => {
      const most = (ended.get(marker) ?? []).filter(
        ({ kind, outcome }) => kind.endsWith("stream") && outcome !== "answered",
      );
      return length > most.length ? [`${marker}: ${length} times for ${most.length} streams that broke off`] : [];
    });
  },
  "charged twice": (log: Indexed) => {
    const entries = [...log.charges].flatMap(([id, { entries }]) => (entries > 1 ? [`${id}: ${entries} entries`] : []));
    const keyed = [...grouped(log.calls, ({ idempotencyKey }) => idempotencyKey)].flatMap(([key, calls]) => {
      const ids = new Set(
        calls.flatMap((call) => ((log.chargeOf(call)?.chargedNanoUsd ?? 0n) > 0n ? call.requestId : [])),
      );
      return ids.size > 1 ? [`${key}: charged ${ids.size} times`] : [];
    });
    return [...entries, ...keyed];
  },
  "free answers": (log: Indexed) =>
    callsWhere(log, (call) => {
      if (call.outcome !== "answered" || call.replayed || isForgiven(log, call)) return false;
      const isFree = (log.chargeOf(call)?.chargedNanoUsd ?? 0n) === 0n && billOf(log, call) !== 0n;
      return isFree && `bill ${billOf(log, call)}`;
    }),
  "JSON charged that died with its API": (log: Indexed) => chargedAfterDeath(log).map(({ id }) => id),
  "answers charged wrongly": (log: Indexed) =>
    callsWhere(log, (call) => {
      const bill = billOf(log, call);
      if (call.outcome !== "answered" || call.replayed || bill === undefined) return false;
      const { chargedNanoUsd = 0n, shortfallNanoUsd = 0n } = log.chargeOf(call) ?? {};
      if (chargedNanoUsd === 0n) return false;
      return chargedNanoUsd + shortfallNanoUsd !== bill && `charged ${chargedNanoUsd} of ${bill}`;
    }),
  /** An error before the response is free, unless the response can still be fetched by its key. */
  "errors charged": (log: Indexed) =>
    callsWhere(log, (call) => {
      if (call.outcome !== "refused" || call.idempotencyKey !== undefined) return false;
      const charged = log.chargeOf(call)?.chargedNanoUsd ?? 0n;
      const most = call.begun ? mayCost(log, call) : 0n;
      return charged > most && `charged ${charged}, at most ${most}`;
    }),
  /** A caller that disconnected, or lost the connection, pays at most the provider's cost. */
  "disconnected callers charged too much": (log: Indexed) =>
    callsWhere(log, (call) => {
      if (call.outcome === "answered" || call.outcome === "refused") return false;
      const charged = log.chargeOf(call)?.chargedNanoUsd ?? 0n;
      return charged > mayCost(log, call) && `charged ${charged}, at most ${mayCost(log, call)}`;
    }),
  /** Every charge belongs to a call; a caller that lost the connection may not know its id. */
  "charges without a call": (log: Indexed) => {
    const known = new Set(log.calls.map(({ requestId }) => requestId));
    const unnamed = grouped(
      log.calls.filter(({ requestId }) => requestId === undefined),
      ({ account }) => account,
    );
    const charged = log.entries.filter(
      (entry) => isCost(entry) && !known.has(entry.id) && (log.charges.get(entry.id)?.chargedNanoUsd ?? 0n) > 0n,
    );
    return [...grouped(charged, ({ account }) => account)].flatMap(([account, entries]) => {
      const most = unnamed.get(account)?.length ?? 0;
      const ids = entries.slice(0, 3).map(({ id }) => id);
      return entries.length > most
        ? [`${account}: ${entries.length} for ${most} calls without an id, ${ids.join()}`]
        : [];
    });
  },
  "negative balances": ({ balances }: Indexed) =>
    balances.flatMap(({ account, availableNanoUsd, heldNanoUsd }) =>
      availableNanoUsd < 0n || heldNanoUsd < 0n ? [`${account}: ${availableNanoUsd}, held ${heldNanoUsd}`] : [],
    ),
  "open holds": ({ openHolds }: Indexed) => (openHolds > 0 ? [`${openHolds}`] : []),
  undecided: ({ undecided }: Indexed) => (undecided > 0 ? [`${undecided}`] : []),
  "lost jobs": ({ openJobs }: Indexed) => (openJobs > 0 ? [`${openJobs} still wait or run`] : []),
  /** Compares each balance with the sum of the ledger's entries. */
  "balances that differ": ({ entries, balances }: Indexed) => {
    const sums = grouped(entries, ({ account }) => account);
    return balances.flatMap(({ account, availableNanoUsd, heldNanoUsd }) => {
      const sum = (sums.get(account) ?? []).reduce((total, { amountNanoUsd }) => total + amountNanoUsd, 0n);
      const differs = sum - availableNanoUsd - heldNanoUsd;
      return differs === 0n ? [] : [`${account}: ${differs}`];
    });
  },
  "the service's own check": ({ checkOk, checkDifferenceNanoUsd }: Indexed) =>
    checkOk && checkDifferenceNanoUsd === 0n ? [] : [`difference ${checkDifferenceNanoUsd}`],
  "processes above 700 MB": ({ peakBytes }: Indexed) =>
    [...peakBytes].flatMap(([name, bytes]) => (bytes > mostBytes ? [`${name}: ${Math.round(bytes / 1e6)} MB`] : [])),
  "processes that ended by themselves": ({ crashes }: Indexed) => crashes,
  "objects without a record": ({ strayObjects }: Indexed) => strayObjects,
} as const;

export function examine(log: RunLog): Findings {
  const known = indexed(log);
  return Object.fromEntries(Object.entries(oracles).map(([name, oracle]) => [name, oracle(known)])) as Findings;
}

export const isBroken = (findings: Findings): boolean => Object.values(findings).some((found) => found.length > 0);

/**
 * Credits, less the provider's bill for every call, less the balances of the accounts: 0. A call without a bill (a
 * broken-off response, or one without usage) counts with its charge, which an oracle compares with the maximum.
 */
export function differenceFromBills(log: RunLog): { nanoUsd: bigint; billed: number; byCharge: number } {
  const known = indexed(log);
  const answers = new Map(
    log.calls
      .filter(({ outcome, replayed }) => outcome === "answered" && !replayed)
      .map((call) => [call.requestId, call]),
  );
  let credits = 0n;
  let costs = 0n;
  let [billed, byCharge] = [0, 0];
  for (const entry of log.entries) if (!isCost(entry) && entry.kind !== "refund") credits += entry.amountNanoUsd;
  for (const [id, { chargedNanoUsd, shortfallNanoUsd }] of known.charges) {
    const call = answers.get(id);
    const bill = call && (chargedNanoUsd > 0n || !isForgiven(known, call)) ? billOf(known, call) : undefined;
    if (bill !== undefined) billed++;
    else if (chargedNanoUsd > 0n) byCharge++;
    costs += bill === undefined ? chargedNanoUsd : bill - shortfallNanoUsd;
  }
  const have = log.balances.reduce((sum, each) => sum + each.availableNanoUsd + each.heldNanoUsd, 0n);
  return { nanoUsd: credits - costs - have, billed, byCharge };
}
