import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import { isPublicIp } from "#platform/addresses";
import type { Clock } from "#platform/clock";
import { connectTimeoutMs, dispatch, type HttpAnswer } from "#platform/http";

const maxRedirects = 5;
const redirects: readonly number[] = [301, 302, 303, 307, 308];
const idleTimeoutMs = 30_000;

/**
 * Fetches URLs that come from providers: http and https, and only from public IP addresses. The address is checked when
 * the connection is made, so that DNS cannot change it in between, and again for every redirect. No credentials are
 * sent.
 */
export function createSafeFetch(deps: {
  clock: Clock;
  /** The operator's own origin, which may be private. It is not trusted after a redirect from another origin. */
  trusted?: string;
  resolve?: (host: string) => Promise<readonly { address: string; family: number }[]>;
  isPublic?: (ip: string) => boolean;
}) {
  const { clock, trusted, resolve = (host) => lookup(host, { all: true }), isPublic = isPublicIp } = deps;
  const options = { headersTimeout: idleTimeoutMs, bodyTimeout: idleTimeoutMs, allowH2: false };
  const unrestricted = new Agent({ ...options, connect: { timeout: connectTimeoutMs } });
  const restricted = new Agent({ ...options, connect: publicOnly(resolve, isPublic) });

  return {
    /**
     * Returns a 200 response. Its body throws after `limitBytes`. Rejects with the signal's reason, or with an error
     * that names only the host.
     */
    async get({ url, limitBytes, signal }: { url: string; limitBytes: number; signal: AbortSignal }) {
      let target = parseUrl(url);
      let isTrusted = target.origin === trusted;
      for (let hop = 0; hop <= maxRedirects; hop++) {
        const request = {
          origin: target.origin,
          path: target.pathname + target.search,
          method: "GET" as const,
          headers,
        };
        const answer = await dispatch(isTrusted ? unrestricted : restricted, request, signal, clock);
        if (answer.status === 200) return bounded(answer, limitBytes, target);
        await answer.body.return?.();
        const { location } = answer.headers;
        if (!redirects.includes(answer.status) || location === undefined)
          throw new Error(`status ${answer.status} from ${target.host}`);
        target = parseUrl(location, target);
        isTrusted &&= target.origin === trusted;
      }
      throw new Error(`more than ${maxRedirects} redirects, the last to ${target.host}`);
    },
    /** Aborts all requests. */
    close: async (): Promise<void> => {
      await Promise.all([unrestricted.destroy(), restricted.destroy()]);
    },
  };
}

const headers = { accept: "*/*", "accept-encoding": "identity", "user-agent": "inference-service" };

function parseUrl(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url?.protocol !== "http:" && url?.protocol !== "https:") throw new Error("not an http or https URL");
  return url;
}

/** Checks names and literal addresses before connecting, and the remote address of the connection. */
function publicOnly(
  resolve: (host: string) => Promise<readonly { address: string; family: number }[]>,
  isPublic: (ip: string) => boolean,
): buildConnector.connector {
  const find: LookupFunction = (host, { all }, callback) => {
    resolve(host).then(
      (addresses) => {
        const allowed = addresses.filter(({ address }) => isPublic(address));
        const [first] = allowed;
        if (!first) callback(notPublic(host), []);
        else if (all) callback(null, allowed);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
  const connect = buildConnector({ timeout: connectTimeoutMs, allowH2: false, lookup: find });
  return (options, callback) => {
    const { hostname } = options;
    if (isIP(hostname) !== 0 && !isPublic(hostname)) return callback(notPublic(hostname), null);
    connect(options, (error, socket) => {
      if (error) return callback(error, null);
      if (isPublic(socket.remoteAddress ?? "")) return callback(null, socket);
      socket.destroy();
      callback(notPublic(hostname), null);
    });
  };
}

const notPublic = (host: string) => new Error(`${host} is not a public address`);

async function bounded(answer: HttpAnswer, limitBytes: number, { host }: URL): Promise<HttpAnswer> {
  const { body, headers } = answer;
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity" || Number(headers["content-length"]) > limitBytes) {
    await body.return?.();
    throw new Error(
      encoding === "identity" ? `over ${limitBytes} bytes from ${host}` : `a compressed body from ${host}`,
    );
  }
  return { ...answer, body: upTo(body, limitBytes, host) };
}

/** A generator is not suitable, because `return` must release the body even before the first `next`. */
function upTo(body: HttpAnswer["body"], limitBytes: number, host: string): HttpAnswer["body"] {
  let remainingBytes = limitBytes;
  const cancel = async () => {
    await body.return?.();
    return { done: true as const, value: undefined };
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      const step = await body.next();
      if (!step.done) remainingBytes -= step.value.length;
      if (remainingBytes >= 0) return step;
      await cancel();
      throw new Error(`over ${limitBytes} bytes from ${host}`);
    },
    return: cancel,
  };
}
