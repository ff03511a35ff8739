import { invalidValue } from "#errors";

/** A link on the web, and nothing that readers of addresses may take for another one. */
const plain = /^https?:\/\/[^\s\\@/?#\p{Cc}]+(?:[/?#][^\s\\\p{Cc}]*)?$/iu;

function hostOf(address: string): string | undefined {
  if (!plain.test(address)) return undefined;
  try {
    return new URL(address).hostname.replace(/\.+$/, "");
  } catch {
    return undefined;
  }
}

/**
 * The provider takes addresses of its own file store in the same field as links. Files there are another tenant's as likely
 * as not, for all share the operator's key; of its hosts only the public storage passes.
 */
export function checkLink(address: string, at: string): void {
  const host = hostOf(address);
  if (host === undefined)
    throw invalidValue(
      at,
      /^(https?:|upl_)/i.test(address)
        ? `${at} must be a plain http or https address, or the id of an upload.`
        : `${at}: what is kept at the provider cannot be used here; send it itself, by a link or as an upload.`,
    );
  const isProviders = /(^|\.)(googleapis\.com|goog|google\.internal)$/.test(host) && host !== "storage.googleapis.com";
  if (isProviders)
    throw invalidValue(at, `${at}: what is kept at the provider cannot be used here; send it itself, or as an upload.`);
}
