import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { MongoBinary } from "mongodb-memory-server-core";

// A separate process, because the downloader prints its progress and cannot be canceled.
try {
  const [downloadDir = ".", version = ""] = process.argv.slice(2);
  await copyFile(await MongoBinary.getPath({ downloadDir, version }), join(downloadDir, "mongod"));
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    `${reason
      .split("\n")
      .map((line) => line.trim())
      .join(" ")}\n`,
  );
  process.exitCode = 1;
}
