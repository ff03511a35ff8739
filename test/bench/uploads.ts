import { request } from "node:http";
import { type Measured, residentBytes, sampleMs, watchMost } from "./processes.ts";
import { mebi, table } from "./table.ts";
import type { Target } from "./workload.ts";

/** The largest upload in a single request: 95 MB. */
const uploadBytes = 99_614_720;
const atOnce = 10;

export interface UploadRound {
  readonly form: "raw body" | "multipart form";
  readonly seconds: number;
  /** Resident memory of the API before the uploads, at its peak, and after them. */
  readonly beforeBytes: number;
  readonly mostBytes: number;
  readonly afterBytes: number;
}

const pngHead = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const piece = Buffer.alloc(64 * 1024);

function* bodyOf(form: UploadRound["form"], boundary: string): Generator<Buffer> {
  if (form === "multipart form") yield Buffer.from(formHead(boundary));
  yield pngHead;
  for (let remaining = uploadBytes - pngHead.length; remaining > 0; remaining -= piece.length)
    yield piece.subarray(0, remaining);
  if (form === "multipart form") yield Buffer.from(formTail(boundary));
}

const formHead = (boundary: string) =>
  `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n`;
const formTail = (boundary: string) => `\r\n--${boundary}--\r\n`;

async function upload({ origin, headers }: Target, form: UploadRound["form"]): Promise<void> {
  const boundary = "an-upload-of-the-bench";
  const framing = form === "raw body" ? 0 : formHead(boundary).length + formTail(boundary).length;
  const { authorization = "" } = headers;
  await new Promise<void>((resolve, reject) => {
    const outgoing = request(`${origin}/v1/uploads`, {
      method: "POST",
      headers: {
        authorization,
        "content-type": form === "raw body" ? "application/octet-stream" : `multipart/form-data; boundary=${boundary}`,
        "content-length": uploadBytes + framing,
      },
    });
    outgoing.on("error", reject).on("response", (response) => {
      response.resume().on("end", () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`an upload was answered ${response.statusCode}`));
      });
    });
    const pieces = bodyOf(form, boundary);
    const write = () => {
      for (let next = pieces.next(); ; next = pieces.next()) {
        if (next.done) return void outgoing.end();
        if (!outgoing.write(next.value)) return void outgoing.once("drain", write);
      }
    };
    write();
  });
}

/** The effect of ten of the largest uploads at once on the API's memory. */
export async function measureUploads(target: Target, api: Measured): Promise<UploadRound[]> {
  const rounds: UploadRound[] = [];
  // The first upload of each form loads modules.
  for (const form of ["raw body", "multipart form"] as const) await upload(target, form);
  for (const form of ["raw body", "multipart form"] as const) {
    const beforeBytes = residentBytes(api);
    const mostBytes = watchMost(() => residentBytes(api));
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: atOnce }, () => upload(target, form)));
    const seconds = (performance.now() - startedAt) / 1_000;
    rounds.push({ form, seconds, beforeBytes, mostBytes: mostBytes(), afterBytes: residentBytes(api) });
  }
  return rounds;
}

export const renderUploads = (rounds: readonly UploadRound[], command: string, machine: readonly string[]): string =>
  `# Uploads, measured

Written by \`${command}\`: ten uploads of 95 MB (${uploadBytes} bytes) at once, through one API process into embedded storage,
after one upload of each form. Resident memory of the API, looked at every ${sampleMs} ms. Sender, API and stores share the machine:

${machine.map((line) => `- ${line}`).join("\n")}

${table(
  ["form", "seconds for all", "MB/s", "before, MiB", "at most", "more than before", "after"],
  rounds.map(({ form, seconds, beforeBytes, mostBytes, afterBytes }) => [
    form,
    seconds.toFixed(1),
    mebi((atOnce * uploadBytes) / seconds),
    mebi(beforeBytes),
    mebi(mostBytes),
    `+${mebi(mostBytes - beforeBytes)}`,
    mebi(afterBytes),
  ]),
)}
`;
