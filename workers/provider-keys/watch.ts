import type { ProviderKey, ProviderKeys } from "#provider-keys";
import type { NewEvent, Webhooks } from "#webhooks";

const seconds = (time: Date) => Math.floor(time.getTime() / 1_000);

function becameInvalid(key: ProviderKey, since: Date): NewEvent {
  const { account, id, upstream, name, label, statusMessage } = key;
  const data = {
    id,
    object: "provider_key",
    provider: upstream,
    name,
    label,
    status: "invalid",
    status_message: statusMessage,
    checked_at: seconds(since),
  };
  const occurrence = since.toISOString();
  return { account, type: "provider_key.invalid", objectId: id, occurrence, createdAt: since, data: () => data };
}

/** Announces provider keys that became invalid. */
export async function watchProviderKeys({
  providerKeys,
  webhooks,
}: {
  providerKeys: Pick<ProviderKeys, "eventsDue" | "noteRecorded">;
  webhooks: Pick<Webhooks, "record">;
}): Promise<void> {
  for (const { key, since } of await providerKeys.eventsDue()) {
    await webhooks.record(becameInvalid(key, since));
    await providerKeys.noteRecorded(key, since);
  }
}
