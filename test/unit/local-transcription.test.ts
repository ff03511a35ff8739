import { expect, test } from "vitest";
import { invalidValue } from "../../shared/errors.ts";
import { begin, generate, never, upload } from "../support/local-media-setup.ts";
import { createManualClock } from "../support/manual-clock.ts";

const speech = async (text: string) => (await generate("speech", { text })).stored[0]?.bytes as Buffer;
const id = upload("audio/wav", Buffer.alloc(0)).id;

test("it describes a recording, counts its minutes, and makes no file", async () => {
  const wav = await speech("a".repeat(100));
  const made = await generate("transcription", { file: id }, { uploads: [upload("audio/wav", wav)] });
  const duration = 160_000 / 24_000;
  expect(made).toEqual({
    output: { text: `This is a recording of 6.667 seconds: audio/wav, ${wav.length} bytes.`, duration },
    usage: { minute: 0.111111 },
    stored: [],
    jobs: [],
  });
});

test.each([
  ["of kind image", upload("image/png", await speech("a"))],
  ["that is no recording", upload("audio/mpeg", Buffer.alloc(2_000))],
  ["that is empty", upload("audio/wav", Buffer.alloc(0))],
])("an upload %s is refused naming its field", async (_, file) => {
  const { done } = begin("transcription", { file: id }, { uploads: [file] });
  await expect(done).rejects.toMatchObject({ name: "UpstreamFailure", kind: "refused", param: "input.file" });
});

test.each([[{}], [{ file: 7 }], [{ file: "upl_other" }]])(
  "an input without its upload is refused: %o",
  async (input) => {
    const { done } = begin("transcription", input);
    await expect(done).rejects.toMatchObject({ kind: "refused", param: "file" });
  },
);

test("it reads 25 MB at most, and an error of reading goes to the caller unchanged", async () => {
  const limits: number[] = [];
  const error = invalidValue("input.file", "too large");
  const read = (limitBytes: number) => {
    limits.push(limitBytes);
    return Promise.reject(error);
  };
  const { done } = begin("transcription", { file: id }, { uploads: [upload("audio/wav", Buffer.alloc(0), { read })] });
  await expect(done).rejects.toBe(error);
  expect(limits).toEqual([26_214_400]);
});

test("triggers work in its prompt", async () => {
  const uploads = [upload("audio/wav", await speech("a"))];
  await expect(begin("transcription", { file: id, prompt: "error:429" }, { uploads }).done).rejects.toMatchObject({
    status: 429,
  });
  const clock = createManualClock();
  const { done } = begin("transcription", { file: id, prompt: "slow:900" }, { uploads, clock });
  clock.advance(900);
  expect((await done).usage).toEqual({ minute: 0.005 });
});

test("once aborted it rejects with the reason while it waits and while it reads", async () => {
  const reason = new Error("disconnected");
  const uploads = [upload("audio/wav", Buffer.alloc(0), { read: never })];
  for (const prompt of ["", "slow:900"]) {
    const controller = new AbortController();
    const { done } = begin("transcription", { file: id, prompt }, { uploads, signal: controller.signal });
    controller.abort(reason);
    await expect(done).rejects.toBe(reason);
  }
});
