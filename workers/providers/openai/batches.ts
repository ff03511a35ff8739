import { isObject, type JsonObject, list, number, object, text } from "#json";
import { idOf, isAmong, readResults } from "../http/batch-results.ts";
import { failureOf } from "../http/failures.ts";
import type { ProviderClient } from "../http/provider-client.ts";
import { type BatchContext, type BatchRequests, type ProviderBatches, UpstreamFailure } from "../provider.ts";
import { closeForm, newBoundary } from "./form.ts";

/** The paths of batches and files below the base address, which ends with the version. */
const version = "/v1";
const pageSize = 100;
const maxPages = 20;
/** The provider's clock may differ from ours by this much. */
const clockMarginSeconds = 300;

const openStates = ["validating", "in_progress", "finalizing", "cancelling"];
const endStates = ["completed", "failed", "expired", "cancelled"];

function formOf(requests: BatchRequests) {
  const boundary = newBoundary();
  const part = (about: string) => Buffer.from(`--${boundary}\r\ncontent-disposition: form-data; ${about}\r\n`);
  const lines = requests.lines.map(({ customId, path, body }) =>
    Buffer.from(`${JSON.stringify({ custom_id: customId, method: "POST", url: version + path, body })}\n`),
  );
  return closeForm(boundary, [
    part(`name="purpose"`),
    Buffer.from("\r\nbatch\r\n"),
    part(`name="file"; filename="${requests.id}.jsonl"`),
    Buffer.from("content-type: application/jsonl\r\n\r\n"),
    ...lines,
    Buffer.from("\r\n"),
  ]);
}

/** https://platform.openai.com/docs/api-reference/batch */
export function createOpenaiBatches(client: ProviderClient): Omit<ProviderBatches, "through"> {
  const retrieve = (id: string, call: BatchContext) =>
    client.sendForJson({ path: `/batches/${encodeURIComponent(id)}` }, call);

  const remove = (file: unknown, call: BatchContext) =>
    client.sendForJson({ method: "DELETE", path: `/files/${encodeURIComponent(text(file))}` }, call);

  function answerOf({ status_code, body }: JsonObject) {
    const status = number(status_code);
    if (status === undefined) return undefined;
    return status === 200 && isObject(body) ? body : failureOf(status, {}, body, client.clock);
  }

  return {
    async submit(requests, call) {
      const file = await client.sendForJson({ path: "/files", form: formOf(requests) }, call);
      const json = {
        input_file_id: file.id,
        endpoint: version + (requests.lines[0]?.path ?? ""),
        completion_window: "24h",
        metadata: { xm_batch: requests.id },
      };
      try {
        return idOf(await client.sendForJson({ path: "/batches", json }, call));
      } catch (error) {
        // The file of a batch that was refused is of no use. Otherwise the batch may exist.
        if (error instanceof UpstreamFailure && error.kind === "refused") await remove(file.id, call);
        throw error;
      }
    },

    async find(id, since, call) {
      let after = "";
      for (let pages = 0; pages < maxPages; pages++) {
        const page = await client.sendForJson({ path: `/batches?limit=${pageSize}${after}` }, call);
        const batches = list(page.data);
        const found = batches.find(({ metadata }) => object(metadata).xm_batch === id);
        if (found) return text(found.id);
        const last = batches.at(-1);
        const isOlder = (number(last?.created_at) ?? 0) < since / 1_000 - clockMarginSeconds;
        if (page.has_more !== true || !last || isOlder) return undefined;
        after = `&after=${encodeURIComponent(text(last.id))}`;
      }
      return undefined;
    },

    hasEnded: async (id, call) => isAmong((await retrieve(id, call)).status, endStates, openStates),

    async *results(id, call) {
      const { output_file_id, error_file_id } = await retrieve(id, call);
      for (const file of [output_file_id, error_file_id]) {
        if (text(file) === "") continue;
        const path = `/files/${encodeURIComponent(text(file))}/content`;
        for await (const [line, bytes] of readResults(await client.send({ path, accept: "*/*" }, call))) {
          yield { customId: text(line.custom_id), answer: answerOf(object(line.response)), bytes };
        }
      }
    },

    async cancel(id, call) {
      await client.sendForJson({ method: "POST", path: `/batches/${encodeURIComponent(id)}/cancel` }, call);
    },

    async discard(id, call) {
      const { input_file_id, output_file_id, error_file_id } = await retrieve(id, call);
      for (const file of [input_file_id, output_file_id, error_file_id])
        if (text(file) !== "") await remove(file, call);
    },
  };
}
