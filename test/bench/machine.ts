import { execFileSync } from "node:child_process";
import { readlinkSync } from "node:fs";
import { cpus, release, totalmem } from "node:os";
import type { Measured } from "./processes.ts";

/** The machine and the versions of a measurement, one fact per line. The stores report their own versions. */
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
