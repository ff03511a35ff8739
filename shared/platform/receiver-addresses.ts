import { lookup, Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { isPublicHost, isPublicIp } from "./addresses.ts";
import type { Config } from "./config.ts";

/**
 * The addresses to which webhooks may be sent: checked by the API when an address is given, and by workers for each
 * connection (docs/operations/security.md).
 *
 * An address is https, on port 443 or from 1024, at a public name or IP address, and each address of a name must be public.
 * If all addresses of a host are in `WEBHOOK_ALLOWED_NETWORKS`, http, any port and any name are allowed.
 * With `WEBHOOK_PROXY_URL` names are not resolved here: the proxy resolves them and refuses addresses that are not public.
 */

export interface Located {
  readonly url: URL;
  /** IP addresses, all of them allowed. Empty if the proxy resolves the host. */
  readonly addresses: readonly string[];
}

/** The message says why, and may be shown to the caller. It continues the sentence "The address ...". */
export class AddressRefused extends Error {
  override readonly name = "AddressRefused";
}

export type Resolve = (host: string) => Promise<readonly string[]>;

const maxLength = 2_048;
/** Ports of stores and of administration, which are no web servers even at a public address. */
const deniedPorts = [2375, 2376, 2379, 2380, 3306, 5432, 5984, 6379, 8500, 9200, 9300, 10_250, 11_211, 27_017, 27_018];
const resolver = { timeout: 2_000, tries: 2 };

/**
 * Asks DNS servers itself: `lookup` would occupy one of the few threads that all lookups and files share, and names whose
 * servers are silent would delay those of others.
 */
async function resolveByDns(host: string): Promise<string[]> {
  const dns = new Resolver(resolver);
  const found = await Promise.allSettled([dns.resolve4(host), dns.resolve6(host)]);
  return found.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
}

/** Also knows the hosts file and search domains, which lead to addresses inside. */
const resolveBySystem = async (host: string): Promise<string[]> =>
  (await lookup(host, { all: true })).map(({ address }) => address);

function parse(text: string): URL {
  if (text.length > maxLength) throw new AddressRefused(`has more than ${maxLength} characters`);
  const url = URL.parse(text);
  if (!url || (url.protocol !== "https:" && url.protocol !== "http:")) throw new AddressRefused("is not an https URL");
  if (url.username !== "" || url.password !== "") throw new AddressRefused("has a user name or password");
  if (text.includes("#")) throw new AddressRefused("has a fragment");
  return url;
}

const nameOf = (host: string) => host.replace(/\.$/, "");

export function createReceiverAddresses(
  config: Pick<Config, "WEBHOOK_ALLOWED_NETWORKS"> &
    Partial<Pick<Config, "WEBHOOK_PROXY_URL" | "PUBLIC_URL" | "S3_ENDPOINT" | "S3_PUBLIC_ENDPOINT">>,
  resolve?: Resolve,
) {
  const { WEBHOOK_ALLOWED_NETWORKS, WEBHOOK_PROXY_URL, PUBLIC_URL, S3_ENDPOINT, S3_PUBLIC_ENDPOINT } = config;
  const networks = (WEBHOOK_ALLOWED_NETWORKS?.split(",") ?? []).map((text) => {
    const network = text.trim();
    return ipaddr.parseCIDR(network.includes("/") ? network : `${network}/${network.includes(":") ? 128 : 32}`);
  });
  const ownHosts = [PUBLIC_URL, S3_ENDPOINT, S3_PUBLIC_ENDPOINT].flatMap((url) =>
    url === undefined ? [] : [nameOf(new URL(url).hostname)],
  );

  function isInside(ip: string): boolean {
    if (isIP(ip) === 0 || ip.includes("%")) return false;
    const address = ipaddr.process(ip);
    return networks.some(([network, bits]) => address.kind() === network.kind() && address.match(network, bits));
  }

  /** Why an address outside of the allowed networks is refused whatever its name resolves to. */
  function refusalOutside({ protocol, port, hostname }: URL): string | undefined {
    if (protocol !== "https:") return "is not an https URL";
    if (port !== "" && (Number(port) < 1024 || deniedPorts.includes(Number(port))))
      return `has the port ${port}; allowed are 443 and most ports from 1024`;
    if (!isPublicHost(hostname)) return "does not have a public host";
    return ownHosts.includes(nameOf(hostname)) ? "leads to this service itself" : undefined;
  }

  function refusalOf(url: URL, addresses: readonly string[]): string | undefined {
    if (addresses.length === 0) return "has a host that cannot be resolved";
    if (addresses.every(isInside)) return undefined;
    const isAllowed = addresses.every((ip) => isPublicIp(ip) || isInside(ip));
    return refusalOutside(url) ?? (isAllowed ? undefined : "leads to an address that is not public");
  }

  async function addressesOf({ hostname }: URL): Promise<readonly string[]> {
    const literal = hostname.replace(/^\[|\]$/g, "");
    if (isIP(literal) !== 0) return [literal];
    if (resolve) return resolve(hostname);
    const found = await resolveByDns(hostname);
    return found.length === 0 && networks.length > 0 ? resolveBySystem(hostname).catch(() => []) : found;
  }

  return {
    /** Resolves the host. Throws `AddressRefused` if it, or any of its IP addresses, is not allowed. */
    async locate(text: string): Promise<Located> {
      const url = parse(text);
      const refusal = networks.length === 0 ? refusalOutside(url) : undefined;
      if (refusal) throw new AddressRefused(refusal);
      if (WEBHOOK_PROXY_URL !== undefined) return { url, addresses: [] };
      const addresses = await addressesOf(url);
      const reason = refusalOf(url, addresses);
      if (reason) throw new AddressRefused(reason);
      return { url, addresses };
    },
  };
}

export type ReceiverAddresses = ReturnType<typeof createReceiverAddresses>;
