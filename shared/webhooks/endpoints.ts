import { randomBytes } from "node:crypto";
import type { mongo as driver } from "mongoose";
import { conflict, notFound } from "#errors";
import { dayMs } from "#platform/clock";
import { randomBase62 } from "#platform/ids";
import { findPage, type Page, scatter } from "#platform/mongo/collection";
import type { Uses } from "#platform/uses";
import type { Collections, DisabledReason, StoredEndpoint } from "./collections.ts";

/** Seals a text so that only workers can open it, under the same account and id. */
export interface Seals {
  seal(account: string, id: string, plaintext: string): Promise<string>;
}

export interface EndpointPatch {
  readonly url?: string | undefined;
  readonly name?: string | null | undefined;
  readonly events?: readonly string[] | undefined;
  /** Replaces all custom headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly includeResult?: boolean | undefined;
  readonly disabled?: boolean | undefined;
}
export type NewEndpoint = EndpointPatch & Required<Pick<EndpointPatch, "url" | "events">>;

const maxEndpoints = 10;
/** Rotations within each other's grace periods. */
const maxSecrets = 4;
/** An owner is told that an endpoint fails before it is disabled. */
const noticeAfterMs = dayMs;
/** An endpoint is disabled after this long without a success, and at least so many failures. */
const disableAfterMs = 5 * dayMs;
const minFailures = 20;

const secretPrefix = "whsec_";
/** A secret of the Standard Webhooks specification, with 256 bits. */
const newSecret = () => `${secretPrefix}${randomBytes(32).toString("base64")}`;
const hintOf = (secret: string) => `${secretPrefix}...${secret.replaceAll("=", "").slice(-4)}`;

export type Endpoint = ReturnType<typeof toEndpoint>;

function toEndpoint(stored: StoredEndpoint, now: number) {
  const { _id: id, disabledReason, failingSince } = stored;
  const isFailing = failingSince !== undefined && now - failingSince.getTime() >= noticeAfterMs;
  return {
    id,
    url: stored.url ?? "",
    name: stored.name ?? null,
    events: stored.events ?? [],
    headerNames: stored.headerNames ?? [],
    includeResult: stored.includeResult ?? false,
    disabledReason: disabledReason ?? null,
    disabledAt: stored.disabledAt ?? null,
    secretHint: stored.secrets[0]?.hint ?? "",
    createdAt: stored.createdAt,
    lastSuccessAt: stored.lastSuccessAt ?? null,
    lastFailureAt: stored.lastFailureAt ?? null,
    failingSince: failingSince ?? null,
    /** What the owner should be shown: it has failed for a day, or the service has disabled it. */
    notice:
      disabledReason === undefined
        ? isFailing
          ? ("failing" as const)
          : null
        : disabledReason === "by_user"
          ? null
          : ("disabled" as const),
  };
}

type Filter = driver.Filter<StoredEndpoint>;
type Update = driver.UpdateFilter<StoredEndpoint>;
/** Excludes the secret of callbacks. */
const hasUrl = { url: { $exists: true } };

export function createEndpoints(
  deps: Uses<"clock"> &
    Pick<Collections, "endpoints"> & {
      secrets: Seals;
      skipOpen: (account: string, endpoint: string) => Promise<void>;
    },
) {
  const { endpoints, secrets, skipOpen, clock } = deps;
  const now = () => new Date(clock.now());
  const shown = (stored: StoredEndpoint) => toEndpoint(stored, clock.now());

  /** Throws 409 if there are more than `atMost`. */
  async function assertRoom(account: string, atMost: number): Promise<void> {
    if ((await endpoints.countDocuments({ account, ...hasUrl }, { limit: atMost + 1 })) > atMost)
      throw conflict(`This account has ${maxEndpoints} webhook endpoints, which is the maximum. Delete one.`);
  }

  async function sealed(account: string, id: string) {
    const secret = newSecret();
    return { secret, stored: { sealed: await secrets.seal(account, id, secret), hint: hintOf(secret) } };
  }

  /** The fields that a patch sets, and those that it removes as undefined. */
  async function fieldsOf(account: string, id: string, { headers, disabled, name, ...given }: EndpointPatch) {
    const names = headers && Object.keys(headers);
    const sealedHeaders =
      names && names.length > 0 ? await secrets.seal(account, id, JSON.stringify(headers)) : undefined;
    return {
      ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)),
      ...(name !== undefined && { name: name ?? undefined }),
      ...(names && { headerNames: names, sealedHeaders }),
      ...(disabled === true && { disabledReason: "by_user", disabledAt: now() }),
      ...(disabled === false && {
        disabledReason: undefined,
        disabledAt: undefined,
        failingSince: undefined,
        failures: undefined,
      }),
    };
  }

  const find = (account: string, _id: string) => endpoints.findOne({ _id, account, ...hasUrl } as Filter);

  async function get(account: string, id: string): Promise<Endpoint> {
    const stored = await find(account, id);
    if (!stored) throw notFound("webhook endpoint");
    return shown(stored);
  }

  /** Adds a secret as the current one. Earlier ones sign until the end of this grace period, or of their own. */
  async function addSecret(account: string, id: string, graceSeconds: number, upsert: boolean) {
    const { secret, stored } = await sealed(account, id);
    const graceUntil = new Date(clock.now() + graceSeconds * 1_000);
    const earlier = {
      $map: {
        input: {
          $filter: {
            input: { $ifNull: ["$secrets", []] },
            cond: { $gt: [{ $ifNull: ["$$this.until", graceUntil] }, now()] },
          },
        },
        in: { $mergeObjects: ["$$this", { until: { $min: ["$$this.until", graceUntil] } }] },
      },
    };
    const set = {
      secrets: { $slice: [{ $concatArrays: [[{ $literal: stored }], earlier] }, maxSecrets] },
      createdAt: { $ifNull: ["$createdAt", now()] },
    };
    const filter = { _id: id, account, ...(!upsert && hasUrl) } as Filter;
    const changed = await endpoints.findOneAndUpdate(filter, [{ $set: set }], { upsert, returnDocument: "after" });
    return changed && { stored: changed, secret };
  }

  return {
    /** The secret is returned only here. Throws 409 for more than ten endpoints. */
    async create(account: string, given: NewEndpoint): Promise<{ endpoint: Endpoint; secret: string }> {
      await assertRoom(account, maxEndpoints - 1);
      const id = `we_${randomBase62(20)}`;
      const { secret, stored: current } = await sealed(account, id);
      const fields = await fieldsOf(account, id, given);
      const defined = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
      const stored = { ...defined, _id: id, account, secrets: [current], createdAt: now() } as StoredEndpoint;
      await endpoints.insertOne(stored);
      // Counted again with this one: if several are created concurrently, the last sees all of them.
      try {
        await assertRoom(account, maxEndpoints);
      } catch (error) {
        await endpoints.deleteOne({ _id: id, account });
        throw error;
      }
      return { endpoint: shown(stored), secret };
    },

    /** Newest first. Throws 400 for an unknown `after`. */
    async list(account: string, page: Page): Promise<Endpoint[]> {
      const owner = { account, ...hasUrl } as Filter;
      return (await findPage(endpoints, page, { unknown: "this account has no webhook endpoint", owner })).map(shown);
    },

    /** Throws 404. */
    get,

    /** The endpoints of all accounts whose last attempt failed, the longest failing first. */
    async failing(limit: number) {
      const filter = { failingSince: { $exists: true } } as Filter;
      const found = await endpoints
        .find(filter, { ...scatter("failing webhooks"), sort: { failingSince: 1 }, limit })
        .toArray();
      return found.map(({ _id: id, account, url = "", failingSince = new Date(0), failures = 0, ...stored }) => ({
        id,
        account,
        origin: URL.parse(url)?.origin ?? "",
        failingSince,
        failures,
        lastFailureAt: stored.lastFailureAt,
        lastSuccessAt: stored.lastSuccessAt,
        disabledReason: stored.disabledReason,
      }));
    },

    /** Enabling an endpoint forgets its failures. Throws 404. */
    async update(account: string, id: string, patch: EndpointPatch): Promise<Endpoint> {
      const fields = Object.entries(await fieldsOf(account, id, patch));
      const set = fields.filter(([, value]) => value !== undefined);
      const unset = fields.filter(([, value]) => value === undefined).map(([field]) => [field, ""]);
      const update = {
        ...(set.length > 0 && { $set: Object.fromEntries(set) as object }),
        ...(unset.length > 0 && { $unset: Object.fromEntries(unset) as object }),
      };
      if (Object.keys(update).length === 0) return get(account, id);
      const filter = { _id: id, account, ...hasUrl } as Filter;
      const changed = await endpoints.findOneAndUpdate(filter, update as Update, { returnDocument: "after" });
      if (!changed) throw notFound("webhook endpoint");
      if (patch.disabled === true) await skipOpen(account, id);
      return shown(changed);
    },

    /** Deliveries that are open are skipped. Throws 404. */
    async delete(account: string, id: string): Promise<void> {
      const { deletedCount } = await endpoints.deleteOne({ _id: id, account, ...hasUrl } as Filter);
      if (deletedCount === 0) throw notFound("webhook endpoint");
      await skipOpen(account, id);
    },

    /** The new secret is returned only here; the earlier ones sign for `graceSeconds` more. Throws 404. */
    async rotateSecret(account: string, id: string, graceSeconds: number) {
      await get(account, id);
      const rotated = await addSecret(account, id, graceSeconds, false);
      if (!rotated) throw notFound("webhook endpoint");
      return { endpoint: shown(rotated.stored), secret: rotated.secret };
    },

    /** Creates or rotates the secret that signs callbacks, and returns it only here. */
    async rotateDefaultSecret(account: string, graceSeconds: number): Promise<{ secret: string; secretHint: string }> {
      const rotated = await addSecret(account, account, graceSeconds, true);
      return { secret: rotated?.secret ?? "", secretHint: rotated?.stored.secrets[0]?.hint ?? "" };
    },

    exists: async (account: string, id: string): Promise<boolean> => (await find(account, id)) !== null,

    /** True if `x-xm-webhook` may name a URL. */
    hasDefaultSecret: async (account: string): Promise<boolean> =>
      (await endpoints.countDocuments({ _id: account, account }, { limit: 1 })) === 1,

    find,

    /** All endpoints of the account, for an event. */
    all: (account: string): Promise<StoredEndpoint[]> =>
      endpoints.find({ account, ...hasUrl } as Filter, { limit: maxEndpoints * 2 }).toArray(),

    /**
     * Records what an attempt at `at` says about its endpoint, and disables one that answered 410 or has failed for too long.
     * Resolves with the reason if it was disabled for this attempt.
     */
    noteAttempt: async (
      account: string,
      id: string,
      at: Date,
      outcome: "delivered" | "failed" | "gone",
    ): Promise<DisabledReason | undefined> => {
      if (outcome === "delivered") {
        const forget = { $set: { lastSuccessAt: at }, $unset: { failingSince: "" as const, failures: "" as const } };
        await endpoints.updateOne({ _id: id, account }, forget);
        return undefined;
      }
      const since = { $ifNull: ["$failingSince", at] };
      const failures = { $add: [{ $ifNull: ["$failures", 0] }, 1] };
      const isOver = {
        $and: [{ $gte: [failures, minFailures] }, { $lte: [since, new Date(at.getTime() - disableAfterMs)] }],
      };
      const reason = outcome === "gone" ? "gone" : { $cond: [isOver, "failing", "$$REMOVE"] };
      const changed = await endpoints.findOneAndUpdate(
        { _id: id, account } as Filter,
        [
          {
            $set: {
              lastFailureAt: at,
              failingSince: since,
              failures,
              disabledReason: { $ifNull: ["$disabledReason", reason] },
            },
          },
          {
            $set: {
              disabledAt: {
                $cond: [
                  { $ne: [{ $type: "$disabledReason" }, "missing"] },
                  { $ifNull: ["$disabledAt", at] },
                  "$$REMOVE",
                ],
              },
            },
          },
        ],
        { returnDocument: "after" },
      );
      if (changed?.disabledReason === undefined) return undefined;
      await skipOpen(account, id);
      return changed.disabledAt?.getTime() === at.getTime() ? changed.disabledReason : undefined;
    },
  };
}

export type Endpoints = ReturnType<typeof createEndpoints>;
