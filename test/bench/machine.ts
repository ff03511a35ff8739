import { execFileSync } from "node:child_process";
import { readlinkSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import type { Measured } from "./processes.ts";

/** What a measurement ran on, one fact a line. The stores say their versions themselves. */
export function describeMachine(stores: readonly Measured[]): string[] {
  const processors = cpus();
  const version = ({ name, pid }: Measured) => {
    const program = readlinkSync(`/proc/${pid}/exe`);
    const [line = ""] = execFileSync(program, ["--version"], { encoding: "utf8" }).split("\n");
    return `${name}: ${line.slice(0, 60).trim()}`;
  };
  return [
    `${processors.length} cores, ${processors[0]?.model.trim()}; ${Math.round(totalmem() / 1024 ** 3)} GB of memory`,
    `Linux ${release()}, Node ${process.version}`,
    ...stores.map(version),
  ];
}
