import type { Readable } from "node:stream";
import { expect, test } from "vitest";
import { createForm, readForm } from "../../api/http/form.ts";
import { createManualClock } from "../support/manual-clock.ts";

const rules = { fileBytes: 1_000_000, formBytes: 1_000_000, files: { file: 1 } };
const fileHead = '--B\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n';

async function* chunksOf(chunks: readonly (string | Buffer)[]) {
  for (const chunk of chunks) {
    yield Buffer.from(chunk);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function reading(chunks: readonly (string | Buffer)[], take?: (file: Readable) => Promise<void>) {
  const clock = createManualClock();
  const taken: Buffer[] = [];
  const keep = async (file: Readable) => {
    for await (const chunk of file) taken.push(chunk as Buffer);
  };
  const form = createForm("multipart/form-data; boundary=B", rules);
  const read = readForm(form, rules, chunksOf(chunks), take ?? keep, clock).then(([file]) => file?.bytes);
  return { clock, taken, read };
}

test("a form may end long before its body does", async () => {
  const { read, taken } = reading([`${fileHead}bytes\r\n--B--\r\n`, "", "epilogue", "x".repeat(100_000), ""]);
  expect(await read).toBe(5);
  expect(Buffer.concat(taken).toString()).toBe("bytes");
});

test("a file is complete however the body is chunked, also where it looks like a boundary", async () => {
  const file = "a\r\n--\r\n--C\r\r\n-B--B\r\n".repeat(50);
  const form = `--B\r\ncontent-disposition: form-data; name="x"\r\n\r\nvalue\r\n${fileHead}${file}\r\n--B--\r\n`;
  for (let size = 1; size < 80; size += 3) {
    const chunks = Array.from({ length: Math.ceil(form.length / size) }, (_, at) =>
      form.slice(at * size, (at + 1) * size),
    );
    const { read, taken } = reading(chunks);
    expect(await read).toBe(file.length);
    expect(Buffer.concat(taken).toString()).toBe(file);
  }
});

test("a form on which the parser hangs is refused after a minute", async () => {
  const { read, clock } = reading([`--B\r\n\r\n${"x".repeat(70_000)}\r\n--B--\r\n`, "more"]);
  const refused = read.catch((error: unknown) => error);
  while (clock.pending() === 0) await new Promise((resolve) => setImmediate(resolve));
  clock.advance(60_000);
  expect(await refused).toMatchObject({ code: "invalid_value" });
  expect(clock.pending()).toBe(0);
});

test("an error while writing the file ends the reading with that error", async () => {
  const broken = new Error("the disk is full");
  const take = async (file: Readable) => {
    for await (const _ of file) throw broken;
  };
  const { read, clock } = reading([fileHead, ...Array.from({ length: 100 }, () => "x".repeat(10_000))], take);
  await expect(read).rejects.toBe(broken);
  expect(clock.pending()).toBe(0);
});

test("a form that breaks off after a write error throws that error", async () => {
  const take = async (file: Readable) => {
    for await (const _ of file) throw new Error("the disk is full");
  };
  // The file has no reader at the end of the body.
  const { read } = reading([`${fileHead}bytes`], take);
  await expect(read).rejects.toThrow("the disk is full");
});
