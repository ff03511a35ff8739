import { defineConfig } from "vitest/config";

/** In this order: the quickest to tell go first. */
const order = ["unit", "integration", "e2e", "chaos"];
const project = (name: string, extra = {}) => ({
  extends: true as const,
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    sequence: { groupOrder: order.indexOf(name) },
    ...extra,
  },
});
const servers = { globalSetup: ["./test/support/servers.ts"] };
/**
 * Processes are started there: one file at a time. Those that are killed, and services that are asked, are waited for more
 * than they work: several files at once, though there be two cores.
 */
const alone = { fileParallelism: false };

export default defineConfig({
  test: {
    allowOnly: false,
    passWithNoTests: false,
    retry: 0,
    reporters: ["default", "./test/support/summary.ts"],
    projects: [
      // Nothing happens at an import, so files may share what they have imported.
      project("unit", { isolate: false, testTimeout: 30_000 }),
      project("integration", { ...servers, maxWorkers: 2, testTimeout: 30_000, hookTimeout: 30_000 }),
      project("e2e", { ...servers, ...alone, testTimeout: 60_000, hookTimeout: 60_000 }),
      project("chaos", { ...servers, maxWorkers: 2, testTimeout: 120_000, hookTimeout: 120_000 }),
    ],
  },
});
