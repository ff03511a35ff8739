import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const state = globalThis as { endOfFile?: (() => void)[] };

/** For what the running test file has taken as a whole: called when everything that it started has ended. */
export const atEndOfFile = (giveBack: () => void): void => {
  state.endOfFile = [...(state.endOfFile ?? []), giveBack];
};

export function endFile(): void {
  const all = state.endOfFile ?? [];
  delete state.endOfFile;
  for (const giveBack of all) giveBack();
}

/** The path of a new JSON file, which is removed at the end of the running test file. */
export function temporaryJson(name: string, value: unknown): string {
  const path = join(tmpdir(), `${name}-${randomUUID()}.json`);
  writeFileSync(path, JSON.stringify(value));
  atEndOfFile(() => rmSync(path, { force: true }));
  return path;
}
