import { createRandom, type Random } from "./random.ts";

/** The request of each kind of call. */
export const callKinds = {
  "chat json": 16,
  "chat stream": 18,
  "messages json": 6,
  "messages stream": 8,
  "responses json": 6,
  "responses stream": 8,
  "gemini json": 6,
  "gemini stream": 8,
  embeddings: 10,
  image: 4,
  payment: 3,
  video: 3,
  speech: 4,
  upload: 3,
} as const;
export type CallKind = keyof typeof callKinds;
const isText = (kind: CallKind) => / (json|stream)$/.test(kind);
/** Calls of an account that return JSON. */
export const isJson = (kind: CallKind) => !kind.endsWith(" stream") && !["payment", "speech", "upload"].includes(kind);

/** Behaviors of a mock provider, which it reads from the prompt. */
const textBehaviors = {
  ok: 60,
  slow: 12,
  hang: 2,
  drip: 4,
  reset: 3,
  cut: 3,
  failed: 3,
  limited: 2,
  truncated: 2,
  errorBody: 2,
  hugeFrame: 1,
  doubledDone: 2,
  wrongType: 1,
  hugeUsage: 2,
  noUsage: 1,
} as const;
/** `refused`, a 400, is planned for lines of batches only. */
export type Behavior = keyof typeof textBehaviors | "refused";
const otherBehaviors = { ok: 70, slow: 16, hang: 2, reset: 4, failed: 4, limited: 2, truncated: 1, errorBody: 1 };

export const customerNames = ["first", "second", "third", "nearly empty", "limited", "leaving"] as const;
export type CustomerName = (typeof customerNames)[number];
const customers: Readonly<Record<CustomerName, number>> = {
  first: 40,
  second: 25,
  third: 25,
  "nearly empty": 5,
  limited: 5,
  leaving: 0,
};

export const textModels = ["chaos/chat", "chaos/claude", "chaos/gemini"] as const;

export interface PlannedCall {
  /** A marker in the prompt: calls that repeat another have the same. */
  readonly marker: string;
  readonly atMs: number;
  readonly kind: CallKind;
  readonly model: string;
  /** The account of the call, unless it has its own payment. */
  readonly customer: CustomerName;
  readonly behavior: Behavior;
  /** Selects what has this behavior: the first upstream, all of them, or the first two requests for the call. */
  readonly at: "first" | "all" | "twice";
  /** Selects one of the API instances that run at that time. */
  readonly instance: number;
  /** The time after which the caller disconnects. */
  readonly leaveAfterMs?: number;
  readonly idempotencyKey?: string;
}

/** The kinds of faults other than those of providers. */
export const faultKinds = [
  "api killed",
  "api frozen",
  "api replaced",
  "api cut off",
  "worker killed",
  "worker frozen",
  "worker replaced",
  "worker cut off",
  "redis frozen",
  "redis cut",
  "redis black-holed",
  "redis swapped",
  "redis killed",
  "mongodb stepped down",
  "mongodb killed",
  "mongodb frozen",
  "mongodb black-holed",
  "s3 killed",
  "s3 frozen",
  "stores slow",
] as const;
export type FaultKind = (typeof faultKinds)[number];

export interface PlannedFault {
  /** The fault starts at this time, or when the previous one has ended. */
  readonly atMs: number;
  readonly kind: FaultKind;
  readonly forMs: number;
  /** Selects a process. */
  readonly target: number;
}

export interface Plan {
  readonly calls: readonly PlannedCall[];
  readonly faults: readonly PlannedFault[];
}

const firstFaultMs = 5_000;
const lastFaultMs = 10_000;
const keyedShare = 0.06;
const leavingShare = 0.06;

/** The same seed, minutes and rate give the same plan. `calm` means no faults. */
export function createPlan(options: { seed: number; minutes: number; rate: number; calm?: boolean }): Plan {
  const durationMs = options.minutes * 60_000;
  const planned = planCalls(createRandom(options.seed), durationMs, options.rate);
  return {
    calls: options.calm ? planned.map((call) => ({ ...call, behavior: "ok" })) : planned,
    faults: options.calm ? [] : planFaults(createRandom(options.seed ^ 0x9e3779b9), durationMs),
  };
}

function planCalls(random: Random, durationMs: number, rate: number): PlannedCall[] {
  const calls: PlannedCall[] = [];
  const count = Math.floor((durationMs / 1_000) * rate);
  for (let index = 0; index < count; index++) {
    const kind = random.weighted(callKinds);
    const call: PlannedCall = {
      marker: `c${index}`,
      atMs: (index * 1_000) / rate,
      kind,
      model: isText(kind) ? random.pick(textModels) : `chaos/${kind === "payment" ? "image" : kind}`,
      customer: random.weighted(customers),
      behavior: random.weighted<keyof typeof textBehaviors>(
        isText(kind) ? textBehaviors : { ...noBehaviors, ...otherBehaviors },
      ),
      at: random.next() < 0.5 ? "first" : "all",
      instance: random.below(1_000),
      ...(random.next() < leavingShare && { leaveAfterMs: random.below(1_500) }),
    };
    // Streams are not stored, and a payment is a key by itself.
    if (random.next() < keyedShare && !kind.endsWith("stream") && kind !== "payment") {
      const keyed = { ...call, idempotencyKey: `key-${call.marker}` };
      const { leaveAfterMs: _, ...again } = keyed;
      const repeat = { ...again, atMs: call.atMs + 100 + random.below(8_000), instance: random.below(1_000) };
      calls.push(keyed, repeat);
    }
    // A caller that disconnects from a JSON call does not learn its id, so the call's maximum cost is looked up by the
    // account.
    else calls.push(call.leaveAfterMs !== undefined && isJson(kind) ? { ...call, customer: "leaving" } : call);
  }
  return calls.toSorted((a, b) => a.atMs - b.atMs);
}

const noBehaviors = Object.fromEntries(Object.keys(textBehaviors).map((name) => [name, 0])) as Record<
  keyof typeof textBehaviors,
  number
>;

/** Every kind comes once before any kind comes again. */
export function planFaults(random: Random, durationMs: number): PlannedFault[] {
  const faults: PlannedFault[] = [];
  let waiting: FaultKind[] = [];
  for (let atMs = firstFaultMs; atMs < durationMs - lastFaultMs; atMs += 5_000 + random.below(5_000)) {
    if (waiting.length === 0) waiting = random.shuffled(faultKinds);
    faults.push({
      atMs,
      kind: waiting.pop() as FaultKind,
      forMs: 1_000 + random.below(6_000),
      target: random.below(1_000),
    });
  }
  return faults;
}
