import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

declare module "vitest" {
  interface TaskMeta {
    /** Processor time of the worker itself while the file ran; servers and processes that a test starts are not in it. */
    cpuMs?: number;
  }
}

export interface Times {
  /** Until the first file began: servers, the compile cache, the dashboard, the browser. */
  readonly globalSetupMs: number;
  readonly totalMs: number;
  readonly files: readonly FileTimes[];
}

export interface FileTimes {
  readonly file: string;
  readonly project: string;
  readonly tests: number;
  /** Imports and setup files. */
  readonly setupMs: number;
  readonly ms: number;
  readonly cpuMs: number;
}

/** Ignored by git. `npm run test:times` prints it as a table. */
export const timesFile = ".data/test-times.json";

/** Writes how long each file of a run took. */
export default class TimesReporter implements Reporter {
  #startedAt = 0;
  #firstFileAt: number | undefined;

  onInit(): void {
    this.#startedAt = Date.now();
  }

  onTestModuleStart(): void {
    this.#firstFileAt ??= Date.now();
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const now = Date.now();
    const files = modules.map((module): FileTimes => {
      const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } =
        module.diagnostic();
      return {
        file: module.relativeModuleId,
        project: module.project.name,
        tests: [...module.children.allTests()].length,
        setupMs: Math.round(environmentSetupDuration + prepareDuration + collectDuration + setupDuration),
        ms: Math.round(duration),
        cpuMs: Math.round(module.meta().cpuMs ?? 0),
      };
    });
    const globalSetupMs = (this.#firstFileAt ?? now) - this.#startedAt;
    const times: Times = { globalSetupMs, totalMs: now - this.#startedAt, files };
    mkdirSync(dirname(timesFile), { recursive: true });
    writeFileSync(timesFile, `${JSON.stringify(times, null, 1)}\n`);
  }
}
