import { z } from "zod";
import { count } from "./fields.ts";

/** Pools of a worker process, and what it does at once. */
export const workers = {
  WORKER_PAYLOAD_BUDGET_BYTES: count(
    "Memory of one worker process for large request bodies, uploads sent inline and large responses of providers (each counts as four times its size), and images in responses. One account may take half of what is free; calls that need more get a 503",
    1024 * 1024 * 1024,
  ),
  WORKER_POOLS: z
    .string()
    .regex(/^[a-z]+(,[a-z]+)*$/)
    .default("chat,embeddings,image,media,batches,webhooks,maintenance")
    .describe("Comma-separated list of pools that this worker process serves"),
  WORKER_CONCURRENCY_CHAT: count("Chat calls that one worker process runs concurrently", 500),
  WORKER_CONCURRENCY_EMBEDDINGS: count("Embeddings calls that one worker process runs concurrently", 200),
  WORKER_CONCURRENCY_IMAGE: count("Image calls that one worker process runs concurrently", 50),
  WORKER_CONCURRENCY_MEDIA: count("Media calls that one worker process runs concurrently", 50),
  WORKER_CONCURRENCY_BATCHES: count(
    "Jobs of batches that one worker process runs at once: it validates files, and works at batches of providers",
    2,
  ),
  WORKER_CONCURRENCY_WEBHOOKS: count(
    "Attempts to send webhooks that one worker process makes concurrently, at most half of them to receivers whose last attempt failed",
    500,
  ),
  WORKER_CONCURRENCY_MAINTENANCE: count("Scheduled jobs that one worker process runs concurrently", 10),
};
