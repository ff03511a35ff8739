import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction } from "node:net";
import { Agent, buildConnector } from "undici";
import { isPublicIp } from "./addresses.ts";
import type { Clock } from "./clock.ts";
import { connectTimeoutMs, dispatch, type HttpAnswer } from "./http.ts";

/**
 * Fetches what an answer of somebody else names: http and https, no address that is private, loopback or the like, by the
 * address that is really connected to. A redirect is such an address again. Nothing secret goes along.
 */
export interface SafeFetch {
  /**
   * A 200 whose body has at most `limitBytes`: then it breaks off with an error. Rejects with the signal's reason, or with
   * an error that names no more than the host.
   */
  get(request: { url: string; limitBytes: number; signal: AbortSignal }): Promise<HttpAnswer>;
  /** Cuts what is under way. */
  close(): Promise<void>;
}

const mostRedirects = 5;
const redirects: readonly number[] = [301, 302, 303, 307, 308];
const silenceMs = 30_000;

export function createSafeFetch(deps: {
  clock: Clock;
  /** An origin of the operator's own, wherever it is: trusted in the address itself, not after a redirect from elsewhere. */
  trusted?: string;
  resolve?: (host: string) => Promise<readonly { address: string; family: number }[]>;
  isPublic?: (ip: string) => boolean;
}): SafeFetch {
  const { clock, trusted, resolve = (host) => lookup(host, { all: true }), isPublic = isPublicIp } = deps;
  const options = { headersTimeout: silenceMs, bodyTimeout: silenceMs, allowH2: false };
  const anywhere = new Agent({ ...options, connect: { timeout: connectTimeoutMs } });
  const guarded = new Agent({ ...options, connect: publicOnly(resolve, isPublic) });

  return {
    async get({ url, limitBytes, signal }) {
      let at = addressOf(url);
      let isTrusted = at.origin === trusted;
      for (let hop = 0; hop <= mostRedirects; hop++) {
        const request = { origin: at.origin, path: at.pathname + at.search, method: "GET" as const, headers };
        const answer = await dispatch(isTrusted ? anywhere : guarded, request, signal, clock);
        if (answer.status === 200) return bounded(answer, limitBytes, at);
        await answer.body.return?.();
        const { location } = answer.headers;
        if (!redirects.includes(answer.status) || location === undefined)
          throw new Error(`status ${answer.status} from ${at.host}`);
        at = addressOf(location, at);
        isTrusted &&= at.origin === trusted;
      }
      throw new Error(`more than ${mostRedirects} redirects, the last to ${at.host}`);
    },
    close: async () => {
      await Promise.all([anywhere.destroy(), guarded.destroy()]);
    },
  };
}

const headers = { accept: "*/*", "accept-encoding": "identity", "user-agent": "inference-service" };

function addressOf(text: string, base?: URL): URL {
  const url = URL.parse(text, base?.href);
  if (url?.protocol !== "http:" && url?.protocol !== "https:") throw new Error("no http or https address");
  return url;
}

/** Asked before the connection is made, of names and of literal addresses; and once more when it stands. */
function publicOnly(
  resolve: (host: string) => Promise<readonly { address: string; family: number }[]>,
  isPublic: (ip: string) => boolean,
): buildConnector.connector {
  const find: LookupFunction = (host, { all }, callback) => {
    resolve(host).then(
      (addresses) => {
        const open = addresses.filter(({ address }) => isPublic(address));
        const [first] = open;
        if (!first) callback(notPublic(host), []);
        else if (all) callback(null, open);
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

const notPublic = (host: string) => new Error(`${host} is no public address`);

async function bounded(answer: HttpAnswer, limitBytes: number, { host }: URL): Promise<HttpAnswer> {
  const { body, headers } = answer;
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity" || Number(headers["content-length"]) > limitBytes) {
    await body.return?.();
    throw new Error(
      encoding === "identity" ? `over ${limitBytes} bytes from ${host}` : `compressed bytes from ${host}`,
    );
  }
  return { ...answer, body: upTo(body, limitBytes, host) };
}

/** No generator: what is not begun to be read must be let go of too. */
function upTo(body: HttpAnswer["body"], limitBytes: number, host: string): HttpAnswer["body"] {
  let leftBytes = limitBytes;
  const drop = async () => {
    await body.return?.();
    return { done: true as const, value: undefined };
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      const step = await body.next();
      if (!step.done) leftBytes -= step.value.length;
      if (leftBytes >= 0) return step;
      await drop();
      throw new Error(`over ${limitBytes} bytes from ${host}`);
    },
    return: drop,
  };
}
