/**
 * Creating, changing and testing the provider keys of an account. The API seals a credential and forgets it; a worker checks
 * it, for which this waits. Nothing is stored of a credential that its provider does not accept.
 */
import type { Catalog } from "#catalog";
import { invalidValue, noCapacity, notFound, providerKeyInvalid } from "#errors";
import type { Queues } from "#jobs";
import type { Keys } from "#keys";
import { sleep } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import type { Uses } from "#platform/uses";
import {
  type CheckedCredential,
  type ProviderKey,
  type ProviderKeyFields,
  type ProviderKeyState,
  type ProviderKeys,
  sealedAs,
} from "#provider-keys";
import type { Secrets } from "#secrets";
import { formsFor, type GivenCredential, readConfig, readCredential, settingsFor } from "./credentials.ts";

export { configInput, credentialForms, maxCredential } from "./credentials.ts";

const waitMs = 20_000;
const pollMs = { first: 50, max: 500 };

export interface ProviderKeyPatch extends ProviderKeyFields {
  readonly credential?: GivenCredential | undefined;
}
export type NewProviderKey = ProviderKeyPatch & { readonly provider: string; readonly credential: GivenCredential };

export function createProviderKeyManaging(
  deps: Uses<"clock"> & {
    catalog: Pick<Catalog, "find" | "list" | "upstreams">;
    providerKeys: ProviderKeys;
    secrets: Pick<Secrets, "seal" | "assertSeals">;
    queues: Pick<Queues, "enqueueCheck">;
    keys: Pick<Keys, "existing" | "epochChanged">;
  },
) {
  const { catalog, providerKeys, secrets, queues, keys, clock } = deps;
  const { checks } = providerKeys;

  function upstreamOf(id: string) {
    const upstream = catalog.upstreams.get(id);
    if (upstream?.apiKeyEnv === undefined)
      throw invalidValue("provider", "provider: is not the id of a provider that takes keys of customers.");
    return upstream;
  }

  function namesAt(upstream: string): Readonly<Record<string, string>> {
    const served = catalog
      .list()
      .map(({ id, upstreams }) => [id, upstreams.find((each) => each.upstream === upstream)?.model] as const);
    return Object.fromEntries(served.filter((each): each is [string, string] => each[1] !== undefined));
  }

  const keyProviders = [...catalog.upstreams.values()]
    .filter(({ apiKeyEnv }) => apiKeyEnv !== undefined)
    .map(({ id, provider, region }) => ({
      id,
      region,
      credentials: formsFor(provider),
      settings: settingsFor(provider),
      models: namesAt(id),
    }));

  async function assertLists(account: string, { models, keyIds }: ProviderKeyFields): Promise<void> {
    const model = models?.find((id) => catalog.find(id) === undefined);
    if (model !== undefined) throw invalidValue("models", `models: the model '${model}' does not exist.`);
    if (!keyIds) return;
    const own = new Set(await keys.existing(account, keyIds));
    const unknown = keyIds.find((id) => !own.has(id));
    if (unknown !== undefined) throw invalidValue("key_ids", `key_ids: this account has no key '${unknown}'.`);
  }

  async function poll(account: string, check: string): Promise<ProviderKeyState | undefined> {
    const until = clock.now() + waitMs;
    for (let pauseMs = pollMs.first; ; pauseMs = Math.min(pollMs.max, 1.5 * pauseMs)) {
      const state = await checks.outcome(account, check);
      const remainingMs = until - clock.now();
      if (state || remainingMs <= 0) return state;
      await sleep(clock, Math.min(pauseMs, remainingMs));
    }
  }

  /** Lets a worker check a credential. Undefined if none has within 20 seconds. */
  async function checked(credential: CheckedCredential): Promise<ProviderKeyState | undefined> {
    const { account } = credential;
    const check = await checks.begin(credential);
    try {
      await queues.enqueueCheck(account, check).catch((error: unknown) => {
        throw noCapacity("The provider key cannot be checked right now.", 5, error);
      });
      return await poll(account, check);
    } finally {
      await checks.remove(account, check);
    }
  }

  /** Throws 400 if the provider does not accept the credential. */
  function assertAccepted(state: ProviderKeyState | undefined): void {
    if (state?.status === "invalid") throw providerKeyInvalid(state.message ?? "it is not valid.");
  }

  /** Throws 404. */
  async function find(account: string, id: string) {
    const key = await providerKeys.find(account, id);
    if (!key) throw notFound("provider key");
    return key;
  }

  return {
    /** The providers that take keys of customers. Throws 501 if nothing can be sealed. */
    keyProviders() {
      secrets.assertSeals();
      return keyProviders;
    },

    /** Throws 400, 409 for too many keys, 429 for too many checks, and 501 if nothing can be sealed. */
    async create(
      account: string,
      { provider, credential: given, ...fields }: NewProviderKey,
      isChecked: boolean,
    ): Promise<ProviderKey> {
      const upstream = upstreamOf(provider);
      const { text, label, project } = readCredential(upstream.provider, given);
      const config = readConfig(upstream, fields.config ?? {}, project);
      await assertLists(account, fields);
      await providerKeys.assertRoom(account);
      const key = { id: `pkey_${randomBase62(20)}`, account, upstream: upstream.id, version: 1, config };
      const sealed = await secrets.seal(account, sealedAs(key), text);
      const state = isChecked ? await checked({ ...key, sealed }) : undefined;
      assertAccepted(state);
      const created = await providerKeys.insert(account, { ...fields, ...key, sealed, label, state });
      await keys.epochChanged();
      return created;
    },

    /** A new credential or configuration is checked first, and nothing changes if it is not accepted. */
    async update(account: string, id: string, patch: ProviderKeyPatch, isChecked: boolean): Promise<ProviderKey> {
      const { credential: given, ...fields } = patch;
      await assertLists(account, fields);
      if (given === undefined && fields.config === undefined) {
        const updated = await providerKeys.update(account, id, fields);
        await keys.epochChanged();
        return updated;
      }
      const current = await find(account, id);
      const upstream = upstreamOf(current.upstream);
      const read = given === undefined ? undefined : readCredential(upstream.provider, given);
      const config = readConfig(upstream, fields.config ?? current.config, read?.project ?? current.config.project);
      const version = current.version + (read ? 1 : 0);
      const key = { ...current, config, version };
      const sealed = read ? await secrets.seal(account, sealedAs(key), read.text) : current.sealed;
      const state = isChecked ? await checked({ ...key, sealed }) : undefined;
      assertAccepted(state);
      const credential = read && { sealed, label: read.label, version };
      const changed = await providerKeys.rotate(account, id, current.version, {
        ...fields,
        ...credential,
        config,
        state,
      });
      await keys.epochChanged();
      return changed;
    },

    async delete(account: string, id: string): Promise<void> {
      await providerKeys.delete(account, id);
      await keys.epochChanged();
    },

    /** Throws 400 if the provider does not accept the credential, which the key then shows as well. */
    async test(account: string, id: string): Promise<ProviderKey> {
      const current = await find(account, id);
      const state = await checked(current);
      if (state) {
        const { status, message } = state;
        const isNews = await providerKeys.noteState(account, id, current.version, status, message);
        if (isNews) await keys.epochChanged();
      }
      assertAccepted(state);
      return providerKeys.get(account, id);
    },
  };
}

export type ProviderKeyManaging = ReturnType<typeof createProviderKeyManaging>;
