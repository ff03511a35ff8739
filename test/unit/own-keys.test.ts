import { setImmediate as endOfTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { loadCatalog } from "../../shared/catalog/index.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import type { ProviderKeyMode, SealedProviderKey } from "../../shared/provider-keys/index.ts";
import { createCounting } from "../../workers/counting/index.ts";
import { UpstreamFailure } from "../../workers/providers/index.ts";
import type { AttemptRecord, Candidate, UpstreamAttempt } from "../../workers/upstreams/attempt.ts";
import { failover } from "../../workers/upstreams/failover.ts";
import { createOwnKey } from "../../workers/upstreams/own-key.ts";
import { createOwnKeys } from "../../workers/upstreams/own-keys.ts";
import { openUpstream } from "../../workers/upstreams/upstream.ts";
import { createManualClock } from "../support/manual-clock.ts";

const account = "acct_1";
const asked = { upstream: "bedrock", key: "pkey_1" };
const stored: SealedProviderKey = {
  id: asked.key,
  account,
  upstream: asked.upstream,
  name: null,
  label: "ABSK...0001",
  mode: "first",
  priority: 0,
  disabled: false,
  models: null,
  keyIds: null,
  config: { region: "us-east-1" },
  version: 1,
  status: "ok",
  statusMessage: null,
  checkedAt: null,
  lastUsedAt: null,
  createdAt: new Date(0),
  sealed: "1.abcdefgh.AAAA",
};

/** The keys of a worker in which the stored key reads as `answers` say, one for each read. */
function open(...answers: (SealedProviderKey | Promise<SealedProviderKey>)[]) {
  const clock = createManualClock();
  const log = createLogger("test", "silent");
  const keys = createOwnKeys({
    catalog: loadCatalog(undefined),
    env: {},
    clock,
    log,
    counting: createCounting({ clock, log }),
    secrets: { open: async () => "ABSK-own-key-0001" },
    providerKeys: {
      find: async () => answers.shift(),
      noteState: async () => true,
      noteUsed: async () => {},
    },
  });
  const opened = () => keys.using(account, [asked], async (found) => ({ own: found.get(asked.key) }));
  return { clock, opened };
}

test.each([
  ["nothing", {}, true],
  ["the label", { label: "..." }, true],
  ["the region in its configuration", { config: { region: "eu-central-1" } }, false],
  ["a deployment in its configuration", { config: { region: "us-east-1", deployments: { a: "b" } } }, false],
  ["the credential", { version: 2 }, false],
  ["the mode", { mode: "only" }, false],
  ["the status", { status: "invalid" }, false],
] as const)("a key in steady use whose record changes in %s is opened again or not", async (_, change, isSame) => {
  const { clock, opened } = open(stored, { ...stored, ...change });
  const first = await opened();
  clock.advance(50_000);
  expect((await opened()).own).toBe(first.own);
  clock.advance(20_000);
  expect((await opened()).own === first.own).toBe(isSame);
});

test("a key that the sweep finds unused while it is read again is not closed under its call", async () => {
  const reading = Promise.withResolvers<SealedProviderKey>();
  const { clock, opened } = open(stored, reading.promise);
  // The worker sweeps at 60 and at 75 seconds.
  clock.advance(10_000);
  await opened();
  clock.advance(61_000);
  const again = opened();
  clock.advance(5_000);
  reading.resolve(stored);
  const { own } = await again;
  // It is not read a third time.
  expect((await opened()).own).toBe(own);
});

test("a key that was refused here is tried again once it is valid again", async () => {
  const { clock, opened } = open(stored, stored);
  const { own } = await opened();
  if (!own || !("own" in own)) throw new Error("it was not opened");
  own.own?.noteRejected(new UpstreamFailure("misconfigured", "status 401", { status: 401 }));
  clock.advance(30_000);
  expect((await opened()).own).toBe(own);
  // A test by the customer has set the status to ok meanwhile.
  clock.advance(31_000);
  const later = (await opened()).own;
  expect(later && "own" in later && later.own?.rejection()).toBeUndefined();
});

/** An upstream with a key of the account and one with the operator's, each with one slot. */
function candidates(mode: ProviderKeyMode) {
  const clock = createManualClock();
  const log = createLogger("test", "silent");
  const deps = { clock, log, counting: createCounting({ clock, log }) };
  const catalog = loadCatalog(undefined);
  const [upstream, model] = [catalog.upstreams.get("openai"), catalog.list()[0]];
  if (!upstream || !model) throw new Error("the catalog has no such upstream");
  const state = openUpstream({ ...upstream, concurrency: 1 }, { OPENAI_API_KEY: "sk-operator" }, deps);
  const ownState = openUpstream({ ...upstream, concurrency: 1 }, { OPENAI_API_KEY: "sk-own" }, deps);
  if (!state || !ownState) throw new Error("it was not opened");
  const providerKeys = { noteState: async () => true, noteUsed: async () => {} };
  const own = createOwnKey({ ...stored, mode }, "sk-own", { providerKeys, onError: () => {} });
  const target = { model, outputCap: 100 };
  const common = { target, model: "m", formats: [], cost: undefined };
  const all: Candidate[] = [
    { ...common, upstream: { ...ownState, own } },
    { ...common, upstream: state },
  ];
  const { signal } = new AbortController();
  const ask = (run: (attempt: UpstreamAttempt) => Promise<unknown>) => {
    const record: AttemptRecord = { attempts: [] };
    const served = failover({ targets: [target], account, signal, record, log }, all, clock, run);
    return { served, keys: () => record.attempts.map(({ key }) => key) };
  };
  return { ask };
}

test("a call waits for its own key's slot instead of paying for the operator's", async () => {
  const { ask } = candidates("first");
  const answer = Promise.withResolvers<void>();
  const first = ask(async (attempt) => {
    await answer.promise;
    attempt.succeed();
  });
  const second = ask(async (attempt) => attempt.succeed());
  await endOfTurn();
  expect([first.keys(), second.keys()]).toEqual([[asked.key], []]);
  answer.resolve();
  await Promise.all([first.served, second.served]);
  expect(second.keys()).toEqual([asked.key]);
});

test.each([
  ["first", undefined, [asked.key, undefined]],
  ["only", undefined, [asked.key]],
  ["only", 400, [asked.key]],
  ["only", 503, [asked.key, undefined]],
] as const)("a key of mode %s that cannot be used (status %s) ends at %j", async (mode, status, tried) => {
  const { ask } = candidates(mode);
  const call = ask(async (attempt) => {
    if (attempt.candidate.upstream.own)
      throw new UpstreamFailure(status === 503 ? "unavailable" : "misconfigured", "no RSA key", { status });
    attempt.succeed();
  });
  const code = await call.served.then(
    () => undefined,
    (error: unknown) => (error as { code?: string }).code,
  );
  expect(call.keys()).toEqual(tried);
  expect(code).toBe(tried.length > 1 ? undefined : "byok_authentication_failed");
});
