import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Attributes growth to its owner. */

/** A key without the parts that differ between keys of its kind: ids, hashes, numbers. */
export const keyShape = (key: string): string =>
  key
    .replaceAll(/[A-Za-z0-9_-]*\d[A-Za-z0-9_-]{7,}/g, "*")
    .replaceAll(/[A-Za-z0-9_-]{20,}/g, "*")
    .replaceAll(/\d+/g, "n");

/** The local ports of the process's TCP connections, by the number of the socket. */
function localPorts(pid: number): ReadonlyMap<string, number> {
  const rows = ["tcp", "tcp6"].flatMap((name) =>
    readFileSync(`/proc/${pid}/net/${name}`, "utf8").trim().split("\n").slice(1),
  );
  return new Map(
    rows.map((row) => {
      const [, local = "", , , , , , , , inode = ""] = row.trim().split(/\s+/);
      return [inode, Number.parseInt(local.split(":")[1] ?? "", 16)];
    }),
  );
}

/** The process's open connections: those to its listening port, and the rest. */
export function connectionsOf(pid: number, port: number): { readonly callers: number; readonly others: number } {
  const ports = localPorts(pid);
  const open = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      // The connection has been closed in the meantime.
      return "";
    }
  });
  const callers = open.filter((target) => ports.get(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? "") === port);
  return { callers: callers.length, others: open.length - callers.length };
}
