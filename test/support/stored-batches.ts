import mongoose from "mongoose";
import { onTestFinished } from "vitest";
import type { BatchKind, BatchStatus, StoredBatch } from "../../shared/batches/index.ts";
import { randomBase62 } from "../../shared/platform/ids.ts";
import type { Stores } from "./servers.ts";

const dayMs = 86_400_000;

type Wanted = Partial<StoredBatch> & {
  readonly account: string;
  readonly kind: BatchKind;
  readonly status: BatchStatus;
};

/** A batch that no process works at. */
function storedBatch({ account, kind, status, createdAt = new Date(), ...more }: Wanted): StoredBatch {
  return {
    _id: `${kind === "openai" ? "batch" : "msgbatch"}_${randomBase62(24)}`,
    account,
    kind,
    status,
    key: "key_test",
    endpoint: kind === "openai" ? "/v1/chat/completions" : "/v1/messages",
    inputFile: "file-test",
    createdAt,
    expiresAt: new Date(createdAt.getTime() + dayMs),
    times: { validating: createdAt, [status]: createdAt },
    metadata: {},
    publicUrl: "http://127.0.0.1",
    lines: 3,
    counts: { succeeded: 2, failed: 1, expired: 0, cancelled: 0 },
    usage: { inputTokens: 30, cachedTokens: 10, outputTokens: 12, reasoningTokens: 0 },
    costNanoUsd: 42_000_000n,
    estimateNanoUsd: 100_000_000n,
    problems: [],
    cursor: { line: 3, byte: 300 },
    outputs: [],
    failures: [],
    recorded: [],
    ...more,
  };
}

/** Inserts batches into the database of a service. Resolves with their ids. */
export async function insertBatches(stores: Pick<Stores, "MONGODB_URI">, wanted: readonly Wanted[]): Promise<string[]> {
  const connection = await mongoose.createConnection(stores.MONGODB_URI).asPromise();
  onTestFinished(() => connection.close());
  const batches = wanted.map(storedBatch);
  await connection.collection<StoredBatch>("batches").insertMany(batches);
  return batches.map(({ _id }) => _id);
}
