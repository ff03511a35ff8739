import { z } from "zod";
import { batchStatuses } from "#batches";

/** Batches as `/v1/batches` and `/v1/messages/batches` show them (docs/api/batches.md). */

const seconds = z.int().describe("unix seconds");
const usd = z.string().meta({ example: "12.5" });
const estimate = usd.describe("The most that the batch can cost; known once it is validated");
const time = z.iso.datetime();

const problem = z.object({
  code: z.string().meta({ example: "invalid_json_line" }),
  message: z.string(),
  param: z.string().nullable(),
  line: z.int().nullable().describe("The number of the line, from 1"),
});

const paused = z
  .string()
  .nullable()
  .describe("Why no line begins at the moment, such as `insufficient_balance`; the batch goes on by itself");

/** The schema of `renderBatch`. */
export const batchObject = z
  .object({
    id: z.string().meta({ example: "batch_2kT9vQ4mXw7pLr3sZb8n" }),
    object: z.literal("batch"),
    endpoint: z.string().meta({ example: "/v1/chat/completions" }),
    model: z.string().nullable().describe("If all lines name the same model"),
    errors: z
      .object({ object: z.literal("list"), data: z.array(problem) })
      .nullable()
      .describe("Why the input file was refused: at most 100 entries"),
    input_file_id: z.string(),
    completion_window: z.literal("24h"),
    status: z.enum(batchStatuses),
    output_file_id: z.string().nullable().describe("The answers, once the batch has ended; null if there are none"),
    error_file_id: z.string().nullable().describe("The lines without an answer, likewise"),
    created_at: seconds,
    in_progress_at: seconds.nullable(),
    expires_at: seconds.nullable(),
    finalizing_at: seconds.nullable(),
    completed_at: seconds.nullable(),
    failed_at: seconds.nullable(),
    expired_at: seconds.nullable(),
    cancelling_at: seconds.nullable(),
    cancelled_at: seconds.nullable(),
    request_counts: z.object({ total: z.int(), completed: z.int(), failed: z.int() }),
    usage: z.object({
      input_tokens: z.int(),
      input_tokens_details: z.object({ cached_tokens: z.int() }),
      output_tokens: z.int(),
      output_tokens_details: z.object({ reasoning_tokens: z.int() }),
      total_tokens: z.int(),
    }),
    metadata: z.record(z.string(), z.string()),
    x_cost_usd: usd.describe("The cost of the lines that have ended"),
    x_estimated_max_cost_usd: estimate,
    x_paused: paused,
  })
  .meta({ id: "Batch" });

/** The schema of `renderMessageBatch`. */
export const messageBatchObject = z
  .object({
    id: z.string().meta({ example: "msgbatch_2kT9vQ4mXw7pLr3sZb8n" }),
    type: z.literal("message_batch"),
    processing_status: z.enum(["in_progress", "canceling", "ended"]),
    request_counts: z
      .object({
        processing: z.int(),
        succeeded: z.int(),
        errored: z.int(),
        canceled: z.int(),
        expired: z.int(),
      })
      .describe("Until the batch has ended, all requests count as processing"),
    created_at: time,
    expires_at: time,
    ended_at: time.nullable(),
    cancel_initiated_at: time.nullable(),
    archived_at: time.nullable(),
    results_url: z.url().nullable().describe("Once the batch has ended"),
    x_cost_usd: usd.describe("The cost of the requests that have ended"),
    x_estimated_max_cost_usd: estimate,
    x_paused: paused,
  })
  .meta({ id: "MessageBatch" });
