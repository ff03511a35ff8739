import { isIP, isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

/**
 * Classifies IP addresses and host names as public or not. Sources: the IANA special-purpose address registries, as
 * included in `ipaddr.js`, and the special-use domain names (RFC 6761, 6762, 8375, 9476).
 */

/** IANA assigns public IPv6 addresses from this range only. */
const globalUnicastV6 = ipaddr.IPv6.parseCIDR("2000::/3");
/** IPv4-mapped and NAT64 addresses, whose last four bytes are the effective IPv4 address. */
const embeddedV4 = ["::ffff:0:0/96", "64:ff9b::/96"].map((range) => ipaddr.IPv6.parseCIDR(range));

const localNames =
  /(^|\.)(localhost|local|localdomain|internal|intranet|lan|home|corp|private|home\.arpa|test|invalid)$/;

/**
 * Returns false for private, loopback, link-local, shared, multicast, documentation and reserved addresses, and for
 * text that is not an address.
 */
export function isPublicIp(ip: string): boolean {
  // An address with a zone belongs to one link. `ipaddr.js` would also accept short and octal notations.
  if (isIP(ip) === 0 || ip.includes("%")) return false;
  if (isIPv4(ip)) return ipaddr.IPv4.parse(ip).range() === "unicast";
  const address = ipaddr.IPv6.parse(canonicalHost(ip)?.slice(1, -1) ?? ip);
  if (embeddedV4.some((range) => address.match(range)))
    return new ipaddr.IPv4(address.toByteArray().slice(12)).range() === "unicast";
  return address.range() === "unicast" && address.match(globalUnicastV6);
}

/**
 * Judges a literal address in any notation, or a name, which must have a dot and no local ending. Does not resolve the
 * name, so the caller must also check the resolved address when connecting.
 */
export function isPublicHost(host: string): boolean {
  const name = canonicalHost(host);
  if (name === undefined) return false;
  if (name.startsWith("[")) return isPublicIp(name.slice(1, -1));
  if (isIPv4(name)) return isPublicIp(name);
  const withoutDot = name.replace(/\.$/, "");
  return withoutDot.includes(".") && !localNames.test(withoutDot);
}

/** URL parses every notation (`127.1`, `0x7f000001`, `2130706433`) and writes IPv6 in hexadecimal and brackets. */
function canonicalHost(host: string): string | undefined {
  const text = isIPv6(host) ? `[${host}]` : host;
  if (text === "" || /[/?#@\\\s]/.test(text)) return undefined;
  return URL.parse(`http://${text}`)?.hostname;
}
