import { expect, test } from "vitest";
import { begin, never, upload } from "../support/local-media-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { wav } from "../support/media-files.ts";

const recording = upload("audio/wav", wav(1));
const unread = upload("audio/wav", Buffer.alloc(0), { read: never });
const uploads = [recording];
const film = { duration: 1, resolution: "320x240" };

/** The field of the prompt of each task, and its other required inputs. */
const tasks = [
  ["images", "prompt", { size: "16x16" }],
  ["speech", "text", {}],
  ["transcription", "prompt", { file: recording.id }],
  ["video", "prompt", film],
] as const;

test.each(tasks)("%s: error:<status> in the %s fails before any work, naming it", async (task, field, input) => {
  const { done, storing, jobs } = begin(task, { ...input, [field]: "error:400" }, { uploads });
  await expect(done).rejects.toMatchObject({ status: 400, code: "invalid_value", param: field });
  expect([storing, jobs]).toEqual([[], []]);
});

test.each(tasks)("%s: slow:<ms> in the %s takes that long", async (task, field, input) => {
  const clock = createManualClock();
  const { done, stored } = begin(task, { ...input, [field]: "slow:5000" }, { uploads, clock });
  while (clock.pending() === 0) await new Promise(setImmediate);
  clock.advance(4_999);
  expect(clock.pending()).toBe(1);
  expect(stored).toEqual([]);
  clock.advance(1);
  await done;
});

test.each(tasks)("%s: a call that is aborted before it starts does nothing", async (task, field, input) => {
  const reason = new Error("disconnected");
  const signal = AbortSignal.abort(reason);
  const { done, storing, jobs } = begin(task, { ...input, [field]: "a fox" }, { uploads, signal });
  await expect(done).rejects.toBe(reason);
  expect([storing, jobs]).toEqual([[], []]);
});

test.each<[task: Parameters<typeof begin>[0], when: string, input: object, options?: Parameters<typeof begin>[2]]>([
  ["images", "waits", { prompt: "slow:5000" }],
  ["images", "draws", { prompt: "a fox", size: "2048x2048" }],
  ["images", "reads", { prompt: "a fox", image: unread.id }, { uploads: [{ ...unread, kind: "image" }] }],
  ["images", "stores", { prompt: "a fox", size: "16x16" }, { beforeStore: never }],
  ["speech", "waits", { text: "slow:5000" }],
  ["speech", "stores", { text: "a" }, { beforeStore: never }],
  ["transcription", "waits", { file: unread.id, prompt: "slow:5000" }, { uploads: [unread] }],
  ["transcription", "reads", { file: unread.id }, { uploads: [unread] }],
  ["video", "waits", { ...film, prompt: "slow:5000" }],
  ["video", "works", { prompt: "a fox", duration: 20, resolution: "1280x720" }],
  ["video", "submits", { ...film, prompt: "a fox" }, { beforeStore: never }],
])("%s: once aborted while it %s, it rejects with the reason and stores nothing", async (task, _, input, options) => {
  const reason = new Error("disconnected");
  const controller = new AbortController();
  const clock = createManualClock();
  const { done, stored } = begin(task, { ...input }, { ...options, clock, signal: controller.signal });
  setImmediate(() => controller.abort(reason));
  await expect(done).rejects.toBe(reason);
  expect(stored).toEqual([]);
  expect(clock.pending()).toBe(0);
});
