import { UpstreamFailure } from "../provider.ts";
import type { ProviderRequest } from "../wire/provider-client.ts";

/**
 * The request that a provider's own client library writes, captured instead of sent. Our client sends it, because the
 * libraries repeat submissions that break off, which would be paid twice, do not observe the abort signal while they wait,
 * and one of them cannot be given another address.
 */
export async function captureRequest(
  write: (fetch: typeof globalThis.fetch) => Promise<unknown>,
): Promise<ProviderRequest> {
  let request: ProviderRequest | undefined;
  try {
    await write((url, init) => {
      request ??= requestOf(url instanceof Request ? url.url : String(url), init);
      return Promise.resolve(Response.json({}));
    });
  } catch (cause) {
    throw new UpstreamFailure("misconfigured", "the provider's client does not take this model", { cause });
  }
  if (!request) throw new UpstreamFailure("misconfigured", "the provider's client sends nothing");
  return request;
}

/** Without the library's origin, key and user agent: the upstream's own are used. */
function requestOf(address: string, { method, headers, body }: RequestInit = {}): ProviderRequest {
  const { pathname, search } = new URL(address);
  const extensions = [...new Headers(headers)].filter(([name]) => name.startsWith("x-"));
  const bytes = typeof body === "string" ? Buffer.from(body) : undefined;
  return {
    ...((method === "POST" || method === "PUT") && { method }),
    path: pathname + search,
    headers: Object.fromEntries(extensions),
    ...(bytes && {
      form: {
        headers: { "content-type": "application/json", "content-length": String(bytes.length) },
        parts: [bytes],
      },
    }),
  };
}
