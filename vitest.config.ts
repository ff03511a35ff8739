import { defineConfig } from "vitest/config";

/** The quickest to tell go first. The others run side by side: while one waits for processes and timeouts, others work. */
const order = ["unit", "integration, e2e, chaos"];
const project = (name: string, timeoutMs: number, extra = {}) => ({
  extends: true as const,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    sequence: { groupOrder: order.findIndex((group) => group.includes(name)) },
    // Patience, not bars: several times what a quiet machine needs.
    testTimeout: timeoutMs,
    hookTimeout: timeoutMs,
    expect: { poll: { timeout: timeoutMs / 2 } },
    ...extra,
  },
});
/** More files at once than processors, because most tests of processes wait for timeouts most of the time. */
const servers = {
  globalSetup: ["./test/support/servers.ts"],
  setupFiles: ["./test/support/one-slot.ts", "./test/support/shard-keys.ts"],
  maxWorkers: 3,
};
const processes = { ...servers, globalSetup: [...servers.globalSetup, "./test/support/compiled.ts"] };

const browsers = { ...processes, globalSetup: [...processes.globalSetup, "./test/support/browser-setup.ts"] };

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
      project("unit", 60_000),
      project("integration", 120_000, servers),
      project("e2e", 240_000, browsers),
      project("chaos", 240_000, processes),
    ],
  },
});
