import type { Logger } from "#platform/logger";
import type { ProviderKeys } from "#provider-keys";
import type { Secrets } from "#secrets";
import type { Webhooks } from "#webhooks";

/** Seals all values under the first of `SECRETS_PRIVATE_KEYS`, so that the others can be removed. */
export async function rewrapSecrets(deps: {
  secrets: Pick<Secrets, "currentKey" | "reseal">;
  webhooks: Pick<Webhooks, "sealedValues">;
  providerKeys: Pick<ProviderKeys, "sealedValues">;
  ending: AbortSignal;
  log: Logger;
}): Promise<void> {
  const { secrets, webhooks, providerKeys, ending, log } = deps;
  const { currentKey: key } = secrets;
  if (key === undefined)
    throw new Error("SECRETS_PRIVATE_KEYS is not set in this worker, so it can seal nothing again.");
  let failed = 0;
  const onFailure = (id: string, error: unknown) => {
    failed++;
    log.error({ err: error, id }, "a secret could not be sealed again");
  };
  for (const { sealedValues } of [webhooks, providerKeys]) {
    const resealed = await sealedValues.resealOthers(key, secrets.reseal, onFailure, ending);
    if (resealed > 0) log.info({ key, resealed }, "secrets were sealed under the current key");
  }
  if (failed > 0) log.error({ key, failed }, "some secrets remain under old keys");
}
