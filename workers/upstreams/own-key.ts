import {
  byokAuthenticationFailed,
  byokQuotaExceeded,
  byokRateLimited,
  noCapacity,
  type ServiceError,
  upstreamError,
  upstreamTimeout,
} from "#errors";
import type { ProviderKeyStatus, ProviderKeys, SealedProviderKey } from "#provider-keys";
import { statusOf, withoutCredential } from "../provider-keys/index.ts";
import { UpstreamFailure } from "../providers/provider.ts";

/** A provider key of the account, as a call uses it. It has no readable credential. */
export interface OwnKey extends Pick<SealedProviderKey, "id" | "upstream" | "label" | "mode"> {
  /** The failure with which the provider refused the credential. */
  readonly rejection: () => UpstreamFailure | undefined;
  /** The failure without anything that its text quotes of the credential. */
  readonly withoutCredential: (failure: UpstreamFailure) => UpstreamFailure;
  readonly noteUsed: () => void;
  /** Notes a failure that is the credential's. */
  readonly noteRejected: (failure: UpstreamFailure) => void;
}

interface OwnKeyDeps {
  readonly providerKeys: Pick<ProviderKeys, "noteState" | "noteUsed">;
  readonly onError: (error: Error) => void;
}

const rejectedStatuses: readonly (number | undefined)[] = [undefined, 400, 401, 403];
/** The provider does not accept the credential, or not for this. Without a status, nothing could be sent with it. */
export const isRejected = ({ kind, status, isOutOfCredit }: UpstreamFailure): boolean =>
  kind === "misconfigured" && !isOutOfCredit && rejectedStatuses.includes(status);

/** The request is at fault, for this account at the provider: no other upstream is tried. */
export const isOfRequest = ({ kind, status }: UpstreamFailure): boolean =>
  kind === "refused" || (kind === "misconfigured" && status === 404);

export function createOwnKey(
  key: SealedProviderKey,
  credential: string,
  { providerKeys, onError }: OwnKeyDeps,
): OwnKey {
  const { id, account, upstream, label, mode, version } = key;
  let rejection: UpstreamFailure | undefined =
    key.status === "invalid"
      ? new UpstreamFailure("misconfigured", key.statusMessage ?? "the key is invalid", { status: 401 })
      : undefined;
  let noted: ProviderKeyStatus | undefined = key.status;
  return {
    id,
    upstream,
    label,
    mode,
    rejection: () => rejection,
    withoutCredential: (failure) => failure.withMessage(withoutCredential(failure.message, credential)),
    noteUsed: () => void providerKeys.noteUsed(account, id).catch(onError),
    noteRejected(failure) {
      if (!isRejected(failure)) return;
      // A provider forbids some models to a valid key, which is not reason enough to give the key up.
      const status = statusOf(failure);
      if (status === "invalid") rejection ??= failure;
      if (noted === status || status === "unknown") return;
      noted = status;
      providerKeys.noteState(account, id, version, status, failure.message).catch((error: Error) => {
        noted = undefined;
        onError(error);
      });
    },
  };
}

/** A failure of an attempt with an own key. */
export interface OwnFailure {
  readonly own: OwnKey;
  readonly failure: UpstreamFailure;
}

/** An own key that the provider has asked not to be used for a while. */
export interface CoolingKey {
  readonly own: OwnKey;
  readonly waitMs: number;
}

/**
 * The error of a call that only own keys could serve. It names the provider and the key, because both are the caller's. An
 * error that goes away by itself takes precedence.
 */
export function ownKeyError(
  failures: readonly OwnFailure[],
  cooling: readonly CoolingKey[],
  isBlocked: boolean,
): ServiceError {
  const [soonest] = cooling.toSorted((a, b) => a.waitMs - b.waitMs);
  if (soonest) return byokRateLimited(soonest.own, soonest.waitMs / 1_000);
  const find = (fits: (failure: UpstreamFailure) => boolean) => failures.find(({ failure }) => fits(failure));
  const busy = find(({ kind }) => kind === "busy");
  if (busy) return byokRateLimited(busy.own, (busy.failure.retryAfterMs ?? 1_000) / 1_000, busy.failure);
  if (isBlocked) return noCapacity("The provider of your key fails right now.", 5);
  const failed = find(({ kind }) => kind === "unavailable");
  if (failed)
    return upstreamError(
      `The provider '${failed.own.upstream}' failed with your key ${failed.own.label}.`,
      failed.failure,
    );
  if (find(({ kind }) => kind === "timeout")) return upstreamTimeout("The upstream did not answer in time.");
  const empty = find(({ isOutOfCredit }) => isOutOfCredit === true);
  if (empty) return byokQuotaExceeded(empty.own, empty.failure);
  const rejected = find(isRejected);
  if (rejected) return byokAuthenticationFailed(rejected.own, rejected.failure);
  return upstreamError("The upstream failed.", failures.at(-1)?.failure);
}
