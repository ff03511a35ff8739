import type { Catalog } from "#catalog";
import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Environment } from "#platform/process/secret-files";
import { type CheckedCredential, openCredential, type ProviderKeyState, type ProviderKeys } from "#provider-keys";
import type { Secrets } from "#secrets";
import type { Counting } from "../counting/index.ts";
import { providers } from "../providers/index.ts";
import { ownEndpoint } from "./endpoint.ts";
import { stateOf } from "./state.ts";

/** Less than the API waits. A cloud may need a token first. */
const checkMs = 10_000;

export function createProviderKeyChecker(deps: {
  catalog: Pick<Catalog, "upstreams">;
  env: Environment;
  secrets: Pick<Secrets, "open">;
  providerKeys: Pick<ProviderKeys, "checks">;
  clock: Clock;
  counting: Counting;
  log: Logger;
}) {
  const { catalog, env, secrets, providerKeys, log } = deps;

  /** Makes a request that costs nothing. */
  async function stateOfCredential(key: CheckedCredential): Promise<ProviderKeyState> {
    const upstream = catalog.upstreams.get(key.upstream);
    if (!upstream) return { status: "unknown", message: "The provider is not configured in the worker." };
    const credential = await openCredential(secrets, key);
    try {
      const endpoint = ownEndpoint(upstream, env, key, credential);
      const provider = providers[upstream.provider]({ ...endpoint, concurrency: 1 }, { ...deps, hosts: env });
      try {
        if (!provider.check)
          return { status: "unknown", message: "The provider has no free request that checks a key." };
        await provider.check({ signal: AbortSignal.timeout(checkMs), log });
        return { status: "ok" };
      } finally {
        await provider.close();
      }
    } catch (error) {
      return stateOf(error, credential);
    }
  }

  return {
    /** Rejects if MongoDB is unavailable or the credential cannot be opened; the API then waits in vain. */
    async run(account: string, id: string): Promise<void> {
      const key = await providerKeys.checks.find(account, id);
      if (!key) return;
      const state = await stateOfCredential(key);
      log.info(
        { account, providerKey: key.id, upstream: key.upstream, status: state.status },
        "a provider key was checked",
      );
      await providerKeys.checks.end(account, id, state);
    },
  };
}

export type ProviderKeyChecker = ReturnType<typeof createProviderKeyChecker>;
