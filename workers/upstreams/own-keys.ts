import { createHash } from "node:crypto";
import type { Catalog } from "#catalog";
import { byokKeyGone, noCapacity, ServiceError } from "#errors";
import type { OwnUpstream } from "#jobs";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Environment } from "#platform/process/secret-files";
import { openCredential, type ProviderKeys, type SealedProviderKey } from "#provider-keys";
import type { Secrets } from "#secrets";
import type { Counting } from "../counting/index.ts";
import { ownEndpoint } from "../provider-keys/index.ts";
import { createOwnKey } from "./own-key.ts";
import { openEndpoint, type UpstreamState } from "./upstream.ts";

/** A key is read again after this time, so that its change, deletion or rotation takes effect. One that is not used is closed. */
const maxAgeMs = 60_000;
const sweepMs = 15_000;
const maxKeys = 10_000;

/** Own keys by the id of the key: what a call can use, or why it fails. */
export type OpenedKeys = ReadonlyMap<string, UpstreamState | ServiceError>;

interface Opened {
  readonly account: string;
  readonly upstream: string;
  /** Identifies what the state was made from (`originOf`). */
  readonly origin: string;
  readonly state: UpstreamState;
  readAt: number;
  usedAt: number;
  /** The calls that are looking for an upstream. Those that have found one hold a slot. */
  callers: number;
}

/** Two records of a key with the same origin are used alike. A hash, because a configuration may be long. */
const originOf = ({ version, mode, status, config }: SealedProviderKey): string =>
  createHash("sha256")
    .update(JSON.stringify([version, mode, status, config]))
    .digest("base64url");

/**
 * Provider keys of customers, opened on first use. Each has slots, breakers, cooldowns and connections of its own. Metrics of
 * upstreams are about the operator's keys, so they do not count these. A key that is missing, disabled, another account's, or
 * cannot be opened is an error for the call: it must not run at the operator's cost instead. Its error is not remembered.
 */
export function createOwnKeys({
  catalog,
  env,
  providerKeys,
  secrets,
  clock,
  counting,
  log,
  lineShare,
}: {
  readonly catalog: Pick<Catalog, "upstreams">;
  readonly env: Environment;
  readonly providerKeys: Pick<ProviderKeys, "find" | "noteState" | "noteUsed">;
  readonly secrets: Pick<Secrets, "open">;
  readonly clock: Clock;
  readonly counting: Counting;
  readonly log: Logger;
  readonly lineShare?: number | undefined;
}) {
  /** Ordered by use, the oldest first. */
  const keys = new Map<string, Opened>();
  const opening = new Map<string, Promise<Opened>>();
  /** Keys that were replaced while calls used them. */
  const retired = new Set<Opened>();
  let stopSweeping: (() => void) | undefined;

  const isIdle = ({ callers, state }: Opened) => callers === 0 && state.slots.load().running === 0;

  function close({ state }: Opened): void {
    state.provider.close().catch((error: Error) => log.warn({ err: error.message }, "connections were not closed"));
  }

  function retire(id: string, opened: Opened | undefined): void {
    if (!opened || keys.get(id) !== opened) return;
    keys.delete(id);
    if (isIdle(opened)) close(opened);
    else retired.add(opened);
  }

  function sweep(): void {
    for (const opened of retired)
      if (isIdle(opened)) {
        retired.delete(opened);
        close(opened);
      }
    for (const [id, opened] of keys) if (clock.now() - opened.usedAt >= maxAgeMs && isIdle(opened)) retire(id, opened);
    if (keys.size + retired.size > 0) return;
    stopSweeping?.();
    stopSweeping = undefined;
  }

  async function read(account: string, { upstream, key: id }: OwnUpstream): Promise<SealedProviderKey> {
    const key = await providerKeys.find(account, id).catch((cause: unknown) => {
      throw noCapacity(`The provider key '${id}' cannot be read right now. Nothing was charged.`, 2, cause);
    });
    if (!key || key.disabled || key.account !== account || key.upstream !== upstream) throw byokKeyGone(id);
    return key;
  }

  async function stateOf(key: SealedProviderKey): Promise<UpstreamState> {
    const upstream = catalog.upstreams.get(key.upstream);
    try {
      if (!upstream) throw new Error(`there is no upstream '${key.upstream}'`);
      const credential = await openCredential(secrets, key);
      const endpoint = ownEndpoint(upstream, env, key, credential);
      const onError = (error: Error) => log.warn({ err: error.message, providerKey: key.id }, "a use was not noted");
      return {
        ...openEndpoint(upstream, endpoint, { clock, counting, lineShare, hosts: env }),
        own: createOwnKey(key, credential, { providerKeys, onError }),
      };
    } catch (error) {
      const { account, id } = key;
      log.error({ err: (error as Error).message, account, providerKey: id }, "a provider key cannot be opened");
      throw noCapacity(`The provider key '${id}' cannot be opened right now. Nothing was charged.`, 5);
    }
  }

  async function openNow(account: string, asked: OwnUpstream): Promise<Opened> {
    const id = asked.key;
    const before = keys.get(id);
    try {
      const key = await read(account, asked);
      const origin = originOf(key);
      const now = clock.now();
      // It may have been closed while the key was read. A refusal that was noted here no longer counts if the key is valid.
      const isOpen = keys.get(id) === before;
      const isRefused = key.status !== "invalid" && before?.state.own?.rejection() !== undefined;
      if (before && isOpen && before.origin === origin && !isRefused) {
        before.readAt = now;
        return before;
      }
      const state = await stateOf(key);
      const opened: Opened = { account, upstream: asked.upstream, origin, state, readAt: now, usedAt: now, callers: 0 };
      retire(id, before);
      keys.set(id, opened);
      stopSweeping ??= clock.every(sweepMs, sweep);
      const [[oldestId, oldest] = []] = keys;
      if (keys.size > maxKeys && oldestId !== undefined && oldest) retire(oldestId, oldest);
      return opened;
    } catch (error) {
      retire(id, before);
      throw error;
    }
  }

  async function open(account: string, asked: OwnUpstream): Promise<Opened> {
    const known = keys.get(asked.key);
    const isOwn = known?.account === account && known.upstream === asked.upstream;
    if (isOwn && clock.now() - known.readAt < maxAgeMs) return known;
    if (known && !isOwn) throw byokKeyGone(asked.key);
    const name = JSON.stringify([account, asked]);
    const running = opening.get(name) ?? openNow(account, asked).finally(() => opening.delete(name));
    opening.set(name, running);
    return running;
  }

  async function use(account: string, asked: OwnUpstream): Promise<Opened | ServiceError> {
    try {
      const opened = await open(account, asked);
      opened.callers++;
      opened.usedAt = clock.now();
      // Moves it to the end.
      if (keys.get(asked.key) === opened && keys.delete(asked.key)) keys.set(asked.key, opened);
      return opened;
    } catch (error) {
      if (error instanceof ServiceError) return error;
      throw error;
    }
  }

  return {
    /** Runs `work` with these keys open. They stay open for the attempts that it begins. */
    async using<T>(
      account: string,
      asked: readonly OwnUpstream[],
      work: (opened: OpenedKeys) => Promise<T>,
    ): Promise<T> {
      const used = await Promise.all(asked.map(async (each) => [each.key, await use(account, each)] as const));
      try {
        return await work(
          new Map(used.map(([id, opened]) => [id, opened instanceof ServiceError ? opened : opened.state])),
        );
      } finally {
        for (const [, opened] of used) if (!(opened instanceof ServiceError)) opened.callers--;
      }
    },
    async close(): Promise<void> {
      stopSweeping?.();
      await Promise.all([...keys.values(), ...retired].map(({ state }) => state.provider.close()));
    },
  };
}
