import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Whose something is that there is more of than there was. */

/** A key without what differs from one key of its kind to the next: ids, hashes, numbers. */
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

/** What the process has open: connections to the port that it listens on, and the rest. */
export function connectionsOf(pid: number, port: number): { readonly callers: number; readonly others: number } {
  const ports = localPorts(pid);
  const open = readdirSync(`/proc/${pid}/fd`).map((fd) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${fd}`);
    } catch {
      // Closed meanwhile.
      return "";
    }
  });
  const callers = open.filter((target) => ports.get(/^socket:\[(\d+)\]$/.exec(target)?.[1] ?? "") === port);
  return { callers: callers.length, others: open.length - callers.length };
}
