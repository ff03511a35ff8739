import { BlockList, isIPv4, isIPv6 } from "node:net";

/**
 * What of the internet can be meant by an address. Sources: the IANA special-purpose address registries (RFC 6890 and
 * what follows it) and the special-use domain names (RFC 6761, 6762, 8375, 9476).
 */

/** Never reachable from outside, or never of one host. */
const reservedV4 = subnets("ipv4", [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
]);

/** All that is given out for the internet lies here: what is outside is loopback, local, multicast or unassigned. */
const globalV6 = subnets("ipv6", [["2000::", 3]]);
/** Protocol assignments with Teredo, documentation, 6to4. */
const reservedV6 = subnets("ipv6", [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
]);
/** Their last 32 bits are the IPv4 address that is reached: mapped, and NAT64. */
const overV4 = ["0:0:0:0:0:ffff", "64:ff9b:0:0:0:0"];

const localNames =
  /(^|\.)(localhost|local|localdomain|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid)$/;

function subnets(family: "ipv4" | "ipv6", ranges: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of ranges) list.addSubnet(net, prefix, family);
  return list;
}

/** Of one host on the internet: false for private, loopback, link-local, shared, multicast, documentation... and for no address. */
export function isPublicIp(ip: string): boolean {
  if (isIPv4(ip)) return !reservedV4.check(ip, "ipv4");
  // With a zone it belongs to a link.
  if (!isIPv6(ip) || ip.includes("%")) return false;
  const groups = groupsOf(ip);
  if (overV4.includes(groups.slice(0, 6).join(":"))) return isPublicIp(lastV4(groups));
  return globalV6.check(ip, "ipv6") && !reservedV6.check(ip, "ipv6");
}

/**
 * A host of an address, as URL has it or as typed: a literal address in any notation is judged as such; a name must have a dot and
 * no local ending. What a name resolves to is not looked up: whoever connects checks that too.
 */
export function isPublicHost(host: string): boolean {
  const name = canonical(host);
  if (name === undefined) return false;
  if (name.startsWith("[")) return isPublicIp(name.slice(1, -1));
  if (isIPv4(name)) return isPublicIp(name);
  const plain = name.replace(/\.$/, "");
  return plain.includes(".") && !localNames.test(plain);
}

/** `127.1`, `0x7f000001` and `2130706433` are addresses too: URL knows all notations. */
function canonical(host: string): string | undefined {
  const text = isIPv6(host) ? `[${host}]` : host;
  if (text === "" || /[/?#@\\\s]/.test(text)) return undefined;
  try {
    return new URL(`http://${text}`).hostname;
  } catch {
    return undefined;
  }
}

/** Eight, in hexadecimal without leading zeros. */
function groupsOf(ip: string): readonly string[] {
  const [head = "", tail] = new URL(`http://[${ip}]`).hostname.slice(1, -1).split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail ? tail.split(":") : [];
  return [...before, ...Array<string>(8 - before.length - after.length).fill("0"), ...after];
}

const lastV4 = (groups: readonly string[]): string =>
  groups
    .slice(6)
    .map((group) => Number.parseInt(group, 16))
    .flatMap((group) => [group >> 8, group & 255])
    .join(".");
