import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";

/**
 * Downloads a release archive and unpacks it, if its SHA-256 matches: `node download-versitygw.ts folder url sha256`.
 * It runs as a separate process, like the other downloads, so that it can be stopped in the same way.
 */
const maxBytes = 200_000_000;

async function download(folder: string, url: string, sha256: string): Promise<void> {
  if (url === "") throw new Error("there is no archive for this machine");
  const response = await fetch(url);
  if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
  const total = Number(response.headers.get("content-length"));
  const archive = join(folder, "archive.tar.gz");
  const hash = createHash("sha256");
  let bytes = 0;
  await pipeline(
    response.body,
    async function* count(chunks) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        bytes += chunk.length;
        if (bytes > maxBytes) throw new Error(`${url} has more than ${maxBytes} bytes`);
        process.stdout.write(`${total > 0 ? Math.floor((bytes / total) * 100) : "?"}%\n`);
        yield chunk;
      }
    },
    createWriteStream(archive),
  );
  const found = hash.digest("hex");
  if (found !== sha256) throw new Error(`the SHA-256 of ${url} is ${found}, not ${sha256}`);
  await promisify(execFile)("tar", ["-xzf", archive, "-C", folder]);
}

try {
  const [folder = ".", url = "", sha256 = ""] = process.argv.slice(2);
  await download(folder, url, sha256);
} catch (error) {
  const { message, cause } = error as Error;
  process.stderr.write(`error: ${cause instanceof Error ? cause.message : message}\n`);
  process.exitCode = 1;
}
