import { defineConfig } from "vitest/config";

/** Where the tests are, and which projects run together: docs/testing.md. */
const project = (name: string, groupOrder: number, timeoutMs: number, extra = {}) => ({
  extends: true as const,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    sequence: { groupOrder },
    // Patience, not bars: many times what a quiet machine needs.
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    expect: { poll: { timeout: timeoutMs / 2 } },
    ...extra,
  },
});
const servers = {
  globalSetup: ["./test/support/servers.ts"],
  setupFiles: ["./test/support/await-servers.ts", "./test/support/one-slot.ts", "./test/support/shard-keys.ts"],
  maxWorkers: 2,
};
const processes = { ...servers, globalSetup: [...servers.globalSetup, "./test/support/compiled.ts"] };
const browsers = { ...processes, globalSetup: [...processes.globalSetup, "./test/support/browser-setup.ts"] };

/** The end-to-end tests of the gate: the official client over real processes, and the page in a browser. */
const smokes = ["test/e2e/openai-processes.test.ts", "test/e2e/dashboard-sign-in.test.ts"];

export default defineConfig({
  test: {
    allowOnly: false,
    passWithNoTests: false,
    retry: 0,
    // Nothing happens at an import, so files may share what they have imported: that is half of a file's work.
    isolate: false,
    setupFiles: ["./test/support/around-file.ts", "./test/support/check-logs.ts"],
    reporters: ["default", "./test/support/summary.ts", "./test/support/times.ts"],
    projects: [
      project("unit", 0, 120_000),
      project("integration", 1, 300_000, servers),
      project("smoke", 1, 300_000, { ...browsers, include: smokes }),
      project("e2e", 2, 300_000, browsers),
      // These wait for timeouts most of the time.
      project("chaos", 3, 300_000, { ...processes, maxWorkers: 3 }),
      // What a clock shows needs the machine to itself.
      project("timing", 4, 300_000, { ...processes, maxWorkers: 1 }),
    ],
  },
});
