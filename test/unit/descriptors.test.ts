import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const opening = `
import { open } from "node:fs/promises";
import { checkDescriptors } from "${new URL("../../shared/platform/process/descriptors.ts", import.meta.url).href}";
const held = [];
try {
  for (;;) {
    await checkDescriptors();
    held.push(await open("/dev/null"));
  }
} catch (error) {
  process.stdout.write(error.message);
}
process.exit();
`;

test("a process is not ready once it has less than a tenth of its file descriptors left", async () => {
  const command = `ulimit -n 100 && exec "$0" --input-type=module --eval "$1"`;
  const { stdout } = await promisify(execFile)("sh", ["-c", command, process.execPath, opening]);
  expect(stdout).toBe("91 of 100 file descriptors are open");
});
