import { expect, test } from "vitest";
import { lineIdOf, type StoredBatch, type StoredLine } from "../../shared/batches/index.ts";
import { noCapacity } from "../../shared/errors.ts";
import { newRequestId } from "../../shared/platform/ids.ts";
import { createBatch, openBatches } from "../support/batches-setup.ts";
import { testStores } from "../support/servers.ts";

const account = "acct_lines";
const error = noCapacity("The worker died.").fields();
const answer = { text: '{"object":"chat.completion"}', usage: { input: 4 }, costNanoUsd: 4_000n, estimated: false };

async function startLines() {
  const { batches } = await openBatches(await testStores());
  const line: StoredLine = {
    _id: lineIdOf("batch_1", 0),
    account,
    batch: "batch_1",
    line: 0,
    customId: "line-0",
    byte: 0,
    bytes: 100,
    requestId: newRequestId(),
    model: "local/chat",
    tries: 1,
    instance: "api_1",
    deadlineAt: new Date(Date.now() + 60_000),
    held: 4_000n,
  };
  const { lines } = batches;
  await lines.insert([line]);
  return { lines, line, tryOf: ({ requestId }: StoredLine) => ({ account, line: line._id, requestId }) };
}

const ended = async ({ lines, line }: Awaited<ReturnType<typeof startLines>>) =>
  (await Array.fromAsync(lines.ended(account, [line._id]))).map(({ requestId, text, error: failed }) => ({
    requestId,
    text,
    code: failed?.code,
  }));

test("what comes late for a try that was given up does not end the next one", async () => {
  const all = await startLines();
  const { lines, line, tryOf } = all;
  await lines.storeError(tryOf(line), error);
  await lines.postpone([{ ...line, retryAt: new Date() }]);
  // The worker that was presumed dead, and the one that got its job.
  await lines.storeError(tryOf(line), error);
  expect(await lines.storeAnswer(tryOf(line), answer)).toBe(false);
  const again = { ...line, requestId: newRequestId() };
  expect(await lines.beginAgain([again])).toEqual(new Set([again.requestId]));
  expect(await lines.storeAnswer(tryOf(line), answer)).toBe(false);
  expect(await ended(all)).toEqual([]);
  expect(await lines.storeAnswer(tryOf(again), answer)).toBe(true);
  expect(await ended(all)).toEqual([{ requestId: again.requestId, text: answer.text, code: undefined }]);
});

test("an answer counts if it is the result of its line, also when storing it is repeated", async () => {
  const all = await startLines();
  const { lines, line, tryOf } = all;
  expect(await lines.storeAnswer(tryOf(line), answer)).toBe(true);
  expect(await lines.storeAnswer(tryOf(line), answer)).toBe(true);
  await lines.storeError(tryOf(line), error);
  expect(await ended(all)).toMatchObject([{ text: answer.text, code: undefined }]);
  await lines.delete(account, "batch_1", [0]);
  expect(await lines.storeAnswer(tryOf(line), answer)).toBe(false);

  await lines.insert([line]);
  await lines.storeError(tryOf(line), error);
  expect(await lines.storeAnswer(tryOf(line), answer)).toBe(false);
  expect(await ended(all)).toMatchObject([{ text: undefined, code: "no_capacity" }]);
});

test("lines that a provider ends while a process gives their batch back are looked at now, not after the pause", async () => {
  const opened = await openBatches(await testStores());
  const { batches } = opened;
  const { _id } = await createBatch(opened, { account, keyId: "key_1" }, ["{}"]);
  const claim = () => batches.claim("api_1", ["validating"]);
  const looked = await claim();
  await batches.noteProgress(account, _id, { hasEnded: true });
  await batches.release(looked as StoredBatch, 60_000);
  const again = await claim();
  expect(again?._id).toBe(_id);
  await batches.noteProgress(account, _id, { hasEnded: false });
  await batches.release(again as StoredBatch, 60_000);
  expect(await claim()).toBeUndefined();
});
