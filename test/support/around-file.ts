import { afterAll, beforeAll } from "vitest";
import { endFile } from "./end-of-file.ts";

let cpuAtStart: NodeJS.CpuUsage;

beforeAll(() => {
  cpuAtStart = process.cpuUsage();
});

// The hook that is registered first runs last.
// oxlint-disable-next-line no-empty-pattern -- Vitest reads from it that no fixture is used
afterAll(({}, { file }) => {
  endFile();
  const { user, system } = process.cpuUsage(cpuAtStart);
  file.meta.cpuMs = (user + system) / 1_000;
});
