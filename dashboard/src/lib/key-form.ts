import type { Key, KeyPatch, NewKey } from "../api/keys.ts";

type Scope = Key["scopes"][number];
export type Period = NonNullable<Key["budget"]>["period"];
export type CacheUse = "off" | "on" | "locked";
type Limit = keyof Key["limits"];

/** The fields as the user types them; empty means not set. */
export interface KeyForm {
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly budgetUsd: string;
  readonly period: Period;
  /** One per line. */
  readonly models: string;
  /** A local time, as a date and time input has it. */
  readonly expires: string;
  readonly marksPrompts: boolean;
  readonly cacheUse: CacheUse;
  readonly cacheTtl: string;
  readonly limits: Readonly<Record<Limit, string>>;
}

/** A local time such as 2026-11-23T10:05. */
function localInput(unixSeconds: number): string {
  const date = new Date(unixSeconds * 1000);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function cacheUseOf({ enabled, locked }: Key["cache"]): CacheUse {
  if (enabled) return "on";
  return locked ? "locked" : "off";
}

export const formOf = (key: Key | undefined): KeyForm => ({
  name: key?.name ?? "",
  scopes: key?.scopes ?? ["inference"],
  budgetUsd: key?.budget?.limit_usd ?? "",
  period: key?.budget?.period ?? "month",
  models: key?.models?.join("\n") ?? "",
  expires: key?.expires_at ? localInput(key.expires_at) : "",
  marksPrompts: key?.prompt_cache === "auto",
  cacheUse: key ? cacheUseOf(key.cache) : "off",
  cacheTtl: String(key?.cache.ttl_seconds ?? ""),
  limits: {
    requests_per_minute: String(key?.limits.requests_per_minute ?? ""),
    tokens_per_minute: String(key?.limits.tokens_per_minute ?? ""),
    concurrent_requests: String(key?.limits.concurrent_requests ?? ""),
  },
});

/** In seconds. */
const defaultCacheTtl = 300;
const numberOf = (text: string) => (text === "" ? null : Number(text));

/** Returns all fields; null removes a limit. */
export function toPatch({ name, scopes, budgetUsd, period, models, expires, limits, ...form }: KeyForm): KeyPatch {
  const listed = models.split(/[\s,]+/).filter(Boolean);
  return {
    name: name.trim() || null,
    scopes: [...scopes],
    budget: budgetUsd === "" ? null : { limit_usd: budgetUsd, period },
    models: listed.length > 0 ? listed : null,
    expires_at: expires === "" ? null : Math.floor(new Date(expires).getTime() / 1000),
    prompt_cache: form.marksPrompts ? "auto" : "off",
    cache: {
      enabled: form.cacheUse === "on",
      locked: form.cacheUse === "locked",
      ttl_seconds: Number(form.cacheTtl || defaultCacheTtl),
    },
    limits: {
      requests_per_minute: numberOf(limits.requests_per_minute),
      tokens_per_minute: numberOf(limits.tokens_per_minute),
      concurrent_requests: numberOf(limits.concurrent_requests),
    },
  };
}

/** Omits unset fields. */
export function toNewKey(form: KeyForm): NewKey {
  const { name, budget, models, expires_at, limits, ...same } = toPatch(form);
  const set = Object.entries(limits ?? {}).filter(([, value]) => value !== null);
  return {
    ...same,
    ...(name && { name }),
    ...(budget && { budget }),
    ...(models && { models }),
    ...(expires_at && { expires_at }),
    ...(set.length > 0 && { limits: Object.fromEntries(set) as NonNullable<NewKey["limits"]> }),
  };
}
