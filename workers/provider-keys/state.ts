import type { ProviderKeyState, ProviderKeyStatus } from "#provider-keys";
import { UpstreamFailure } from "../providers/provider.ts";

const shortestQuote = 8;
const maxMessage = 500;

/** The texts in a credential, which is one text or a JSON object of texts. */
function textsOf(credential: string): readonly string[] {
  if (!credential.startsWith("{")) return [credential];
  try {
    const values = Object.values(JSON.parse(credential) as object);
    return values.filter((value) => typeof value === "string");
  } catch {
    return [credential];
  }
}

/** The message without what it quotes of the credential: parts of 8 characters or more, and words with asterisks. */
export function withoutCredential(message: string, credential: string): string {
  const parts = new Set<string>();
  const texts = textsOf(credential);
  const encoded = [credential, ...texts].map((text) => Buffer.from(text).toString("base64"));
  for (const text of [...texts, ...encoded])
    for (let at = 0; at + shortestQuote <= text.length; at++) parts.add(text.slice(at, at + shortestQuote));
  let shown = "";
  for (let at = 0; at < message.length; ) {
    if (!parts.has(message.slice(at, at + shortestQuote))) {
      shown += message[at++];
      continue;
    }
    at += shortestQuote;
    // Each further character that ends a part belongs to the same quote.
    while (at < message.length && parts.has(message.slice(at - shortestQuote + 1, at + 1))) at++;
    shown += "...";
  }
  const words = shown.split(" ").map((word) => (word.includes("***") ? "..." : word));
  return words.join(" ").slice(0, maxMessage);
}

/** The state of a credential as far as this failure tells. */
export function statusOf({ kind, status, isOutOfCredit, isForbidden }: UpstreamFailure): ProviderKeyStatus {
  // No credit is a matter of permission, too: the credential itself is known.
  if (isOutOfCredit || isForbidden || status === 402 || status === 403) return "no_permission";
  if (status === 429) return "rate_limited";
  // Google answers 400 to a bad key.
  return status === 401 || (status === 400 && kind === "misconfigured") ? "invalid" : "unknown";
}

/** The state that the failure of a check tells of the credential. Without a status, nothing could be sent with it. */
export function stateOf(failure: unknown, credential: string): ProviderKeyState {
  if (!(failure instanceof UpstreamFailure))
    return { status: "unknown", message: "The provider did not answer in time." };
  const isUnusable = failure.kind === "misconfigured" && failure.status === undefined;
  const status = isUnusable ? "invalid" : statusOf(failure);
  return { status, message: withoutCredential(failure.message, credential) };
}
