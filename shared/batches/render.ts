import type { JsonObject } from "#json";
import { formatUsd } from "#money";
import { type BatchStatus, isEnded, type StoredBatch } from "./collections.ts";

const seconds = (time: Date | undefined) => (time ? Math.floor(time.getTime() / 1_000) : null);
const iso = (time: Date | undefined) => time?.toISOString() ?? null;

export const linesRecorded = ({ counts }: Pick<StoredBatch, "counts">): number =>
  counts.succeeded + counts.failed + counts.expired + counts.cancelled;

/** The batch object of OpenAI's interface. Times are Unix seconds. Our own fields begin with `x_`. */
export function renderBatch(batch: StoredBatch) {
  const at = (status: BatchStatus) => seconds(batch.times[status]);
  const { counts, usage, problems } = batch;
  return {
    id: batch._id,
    object: "batch" as const,
    endpoint: batch.endpoint,
    model: batch.model ?? null,
    errors: problems.length > 0 ? { object: "list" as const, data: [...problems] } : null,
    input_file_id: batch.inputFile,
    completion_window: "24h" as const,
    status: batch.status,
    output_file_id: batch.outputFile ?? null,
    error_file_id: batch.errorFile ?? null,
    created_at: seconds(batch.createdAt) ?? 0,
    in_progress_at: at("in_progress"),
    expires_at: seconds(batch.expiresAt),
    finalizing_at: at("finalizing"),
    completed_at: at("completed"),
    failed_at: at("failed"),
    expired_at: at("expired"),
    cancelling_at: at("cancelling"),
    cancelled_at: at("cancelled"),
    request_counts: {
      total: batch.lines,
      completed: counts.succeeded,
      failed: counts.failed + counts.expired + counts.cancelled,
    },
    usage: {
      input_tokens: usage.inputTokens,
      input_tokens_details: { cached_tokens: usage.cachedTokens },
      output_tokens: usage.outputTokens,
      output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
      total_tokens: usage.inputTokens + usage.outputTokens,
    },
    metadata: batch.metadata,
    x_cost_usd: formatUsd(batch.costNanoUsd),
    x_estimated_max_cost_usd: formatUsd(batch.estimateNanoUsd),
    x_paused: batch.paused ?? null,
  };
}

/** The message batch of Anthropic's interface. Until it has ended, all of its requests count as processing. */
export function renderMessageBatch(batch: StoredBatch) {
  const { counts, status, times, publicUrl, _id: id } = batch;
  const ended = isEnded(batch);
  const endedAt = ended ? times[status] : undefined;
  const of = (count: number) => (ended ? count : 0);
  return {
    id,
    type: "message_batch" as const,
    processing_status: ended
      ? ("ended" as const)
      : status === "cancelling"
        ? ("canceling" as const)
        : ("in_progress" as const),
    request_counts: {
      processing: ended ? 0 : batch.lines,
      succeeded: of(counts.succeeded),
      errored: of(counts.failed),
      canceled: of(counts.cancelled),
      expired: of(counts.expired),
    },
    created_at: batch.createdAt.toISOString(),
    expires_at: batch.expiresAt.toISOString(),
    ended_at: iso(endedAt),
    cancel_initiated_at: iso(times.cancelling),
    archived_at: null,
    results_url: ended ? `${publicUrl}/v1/messages/batches/${id}/results` : null,
    x_cost_usd: formatUsd(batch.costNanoUsd),
    x_estimated_max_cost_usd: formatUsd(batch.estimateNanoUsd),
    x_paused: batch.paused ?? null,
  };
}

/** The batch in the shape of its interface. */
export const rendered = (batch: StoredBatch): JsonObject =>
  batch.kind === "openai" ? renderBatch(batch) : renderMessageBatch(batch);
