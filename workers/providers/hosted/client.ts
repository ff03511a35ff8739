import { UpstreamFailure } from "../provider.ts";
import type { ProviderClient } from "../wire/provider-client.ts";

type Ask = Parameters<ProviderClient["send"]>[0];

/**
 * The one request that a provider's own client makes when it is asked to. Sending it is ours: the clients repeat by themselves
 * whatever breaks off, a submission too, which would be paid twice; they wait without hearing the signal, and one of them
 * knows its provider's address alone.
 */
export async function written(write: (fetch: typeof globalThis.fetch) => Promise<unknown>): Promise<Ask> {
  let ask: Ask | undefined;
  try {
    await write((url, init) => {
      ask ??= askOf(url instanceof Request ? url.url : String(url), init);
      return Promise.resolve(Response.json({}));
    });
  } catch (cause) {
    throw new UpstreamFailure("misconfigured", "the provider's client does not take this model", { cause });
  }
  if (!ask) throw new UpstreamFailure("misconfigured", "the provider's client sends nothing");
  return ask;
}

/** Below whatever address the operator configured. The key is not the client's affair, nor is what it calls itself. */
function askOf(address: string, { method, headers, body }: RequestInit = {}): Ask {
  const { pathname, search } = new URL(address);
  const own = [...new Headers(headers)].filter(([name]) => name.startsWith("x-"));
  const bytes = typeof body === "string" ? Buffer.from(body) : undefined;
  return {
    ...((method === "POST" || method === "PUT") && { method }),
    path: pathname + search,
    headers: Object.fromEntries(own),
    ...(bytes && {
      form: {
        headers: { "content-type": "application/json", "content-length": String(bytes.length) },
        parts: [bytes],
      },
    }),
  };
}
