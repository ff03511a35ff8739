import { isObject, object, text } from "#json";
import { idOf, isAmong, readResults } from "../http/batch-results.ts";
import { failureInside } from "../http/failures.ts";
import type { ProviderClient } from "../http/provider-client.ts";
import type { BatchContext, ProviderBatches } from "../provider.ts";

/** https://platform.claude.com/docs/en/api/creating-message-batches */
export function createAnthropicBatches(client: ProviderClient): Omit<ProviderBatches, "through"> {
  const pathOf = (id: string) => `/messages/batches/${encodeURIComponent(id)}`;
  const retrieve = (id: string, call: BatchContext) => client.sendForJson({ path: pathOf(id) }, call);

  return {
    async submit({ lines }, call) {
      const requests = lines.map(({ customId, body }) => ({ custom_id: customId, params: body }));
      return idOf(await client.sendForJson({ path: "/messages/batches", json: { requests } }, call));
    },

    hasEnded: async (id, call) =>
      isAmong((await retrieve(id, call)).processing_status, ["ended"], ["in_progress", "canceling"]),

    async *results(id, call) {
      for await (const [line, bytes] of readResults(
        await client.send({ path: `${pathOf(id)}/results`, accept: "*/*" }, call),
      )) {
        const { type, message, error } = object(line.result);
        const customId = text(line.custom_id);
        // A result of another type was cancelled or has expired.
        const failure = type === "errored" ? failureInside(error, client.clock) : undefined;
        yield { customId, answer: type === "succeeded" && isObject(message) ? message : failure, bytes };
      }
    },

    async cancel(id, call) {
      await client.sendForJson({ method: "POST", path: `${pathOf(id)}/cancel` }, call);
    },

    async discard(id, call) {
      await client.sendForJson({ method: "DELETE", path: pathOf(id) }, call);
    },
  };
}
