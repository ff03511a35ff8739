import { expect, test } from "vitest";
import { invalidValue } from "../../shared/errors.ts";
import { begin, generate, upload } from "../support/local-media-setup.ts";

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
