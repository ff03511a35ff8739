import { createWriteStream, renameSync, type WriteStream } from "node:fs";

/** Beyond this the file begins anew, and the one before is kept with the ending `.1`. */
const maxBytes = 64 * 1024 * 1024;

/** The log of `npm start`: each start begins a new one. */
export function openLogFile(file: string) {
  let bytes = 0;
  let stream: WriteStream | undefined;

  function open(): WriteStream {
    try {
      renameSync(file, `${file}.1`);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    bytes = 0;
    // Without its log, for example on a full disk, the service runs on.
    return createWriteStream(file, { mode: 0o600 }).on("error", () => {});
  }

  return {
    file,
    write(line: string): void {
      stream ??= open();
      bytes += line.length + 1;
      stream.write(`${line}\n`);
      if (bytes < maxBytes) return;
      stream.end();
      stream = undefined;
    },
  };
}

export type LogFile = ReturnType<typeof openLogFile>;
