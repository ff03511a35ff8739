import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector, Pool, ProxyAgent } from "undici";
import { isPublicIp } from "#platform/addresses";
import type { Clock } from "#platform/clock";
import { connectTimeoutMs, dispatch, type HttpAnswer, NotConnected } from "#platform/http";
import type { ReceiverAddresses } from "#platform/receiver-addresses";

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

/** An answer was read for no longer than this once its headers have arrived. */
const snippetTimeoutMs = 2_000;

export interface PostAnswer {
  readonly status: number;
  readonly headers: HttpAnswer["headers"];
  /** At most the first `limitBytes` of the body. */
  readonly start: Buffer;
}

/**
 * Posts to URLs that come from customers, and only to addresses that `receivers` allows: they are checked for each
 * connection, which then goes to one of the addresses that were checked. Redirects are not followed, TLS certificates are
 * verified, no proxy of the environment is used, and of the answer no more than `limitBytes` are read.
 *
 * With `proxyUrl`, all requests go through that proxy, by CONNECT with the host's name: the URL is checked here, its
 * addresses by the proxy.
 */
export function createSafePost(deps: { clock: Clock; receivers: ReceiverAddresses; proxyUrl?: string | undefined }) {
  const { clock, receivers, proxyUrl } = deps;
  const options = { headersTimeout: 0, bodyTimeout: 0, allowH2: false };
  const agent =
    proxyUrl === undefined
      ? new Agent({ ...options, connect: allowedOnly(receivers) })
      : throughProxy(proxyUrl, options);
  return {
    /**
     * Resolves once the start of the answer was read. Rejects with `AddressRefused`, an error of the connection, or
     * `TimedOut` if the status has not arrived within `timeoutMs`.
     */
    async post(request: {
      url: string;
      headers: Readonly<Record<string, string>>;
      body: string;
      timeoutMs: number;
      limitBytes: number;
    }): Promise<PostAnswer> {
      const { headers, body, timeoutMs, limitBytes } = request;
      const { origin, pathname, search } = new URL(request.url);
      if (proxyUrl !== undefined) await receivers.locate(request.url);
      const end = new AbortController();
      const sent = { origin, path: pathname + search, method: "POST" as const, headers, body };
      let cancel = clock.after(timeoutMs, () => end.abort(new TimedOut()));
      try {
        const answer = await dispatch(agent, sent, end.signal, clock);
        cancel();
        cancel = clock.after(snippetTimeoutMs, () => end.abort(new TimedOut()));
        return { status: answer.status, headers: answer.headers, start: await startOf(answer.body, limitBytes, end) };
      } catch (error) {
        throw error instanceof NotConnected ? error.cause : error;
      } finally {
        cancel();
      }
    },
    /** Aborts all requests. */
    close: (): Promise<void> => agent.destroy(),
  };
}

export type SafePost = ReturnType<typeof createSafePost>;

export class TimedOut extends Error {
  override readonly name = "TimedOut";
  constructor() {
    super("timed out");
  }
}

/** Closes the connection if there is more. Whatever ends the body, what has arrived of it is returned. */
async function startOf(body: HttpAnswer["body"], limitBytes: number, end: AbortController): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const part of body) {
      parts.push(part);
      bytes += part.length;
      if (bytes >= limitBytes) end.abort(new Error("the rest of the response is not needed"));
    }
  } catch {}
  return Buffer.concat(parts).subarray(0, limitBytes);
}

/** Connects to the addresses that were checked: the name is not resolved a second time. */
function allowedOnly(receivers: ReceiverAddresses): buildConnector.connector {
  return (options, callback) => {
    receivers.locate(`${options.protocol}//${options.host}`).then(
      ({ addresses }) => {
        const pinned = addresses.map((address) => ({ address, family: isIP(address) }));
        const find: LookupFunction = (_, { all }, found) => {
          const [first] = pinned;
          if (all || !first) found(null, pinned);
          else found(null, first.address, first.family);
        };
        const connect = buildConnector({ timeout: connectTimeoutMs, allowH2: false, lookup: find });
        connect(options, callback);
      },
      (error: Error) => callback(error, null),
    );
  };
}

/** A proxy that does not answer a CONNECT counts as a receiver to which connecting timed out. */
const throughProxy = (uri: string, options: Agent.Options) =>
  new ProxyAgent({
    ...options,
    uri,
    proxyTunnel: true,
    connectTimeout: connectTimeoutMs,
    clientFactory: (origin, tunnel) => new Pool(origin, { ...tunnel, headersTimeout: connectTimeoutMs }),
  });

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
