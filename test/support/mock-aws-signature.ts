import { createHash, createHmac } from "node:crypto";

/**
 * Verifies signatures of AWS, written from
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html without any library that signs.
 */
export interface SignedRequest {
  readonly method: string;
  /** As in the first line of the request. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Buffer;
}

const sha256 = (data: string | Buffer) => createHash("sha256").update(data).digest("hex");
const hmac = (key: string | Buffer, data: string) => createHmac("sha256", key).update(data).digest();

/** RFC 3986 leaves only these characters as they are; `encodeURIComponent` leaves five more. */
const encode = (text: string) =>
  [...Buffer.from(text)]
    .map((byte) => {
      const char = String.fromCharCode(byte);
      return /[A-Za-z0-9\-._~]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");

/** The path as it was sent is encoded once more, by every service but S3. */
const canonicalPath = (path: string) => path.split("/").map(encode).join("/");

const compare = (a: string, b: string) => (a < b ? -1 : Number(a > b));

const canonicalQuery = (query: string) =>
  query
    .split("&")
    .filter(Boolean)
    .map((pair) => pair.split("=").map((part) => encode(decodeURIComponent(part))))
    .toSorted(([a = "", x = ""], [b = "", y = ""]) => compare(a, b) || compare(x, y))
    .map(([name = "", value = ""]) => `${name}=${value}`)
    .join("&");

const header = ({ headers }: SignedRequest, name: string) => String(headers[name] ?? "");
const trimmed = (value: string) => value.trim().replace(/ +/g, " ");

/** The signature that a request must have under this secret. */
export function signatureOf(request: SignedRequest, secret: string, scope: string, signedHeaders: string): string {
  const [path = "", query = ""] = request.path.split("?");
  const lines = signedHeaders.split(";").map((name) => `${name}:${trimmed(header(request, name))}\n`);
  const canonical = [
    request.method,
    canonicalPath(path),
    canonicalQuery(query),
    lines.join(""),
    signedHeaders,
    sha256(request.bytes),
  ].join("\n");
  const text = ["AWS4-HMAC-SHA256", header(request, "x-amz-date"), scope, sha256(canonical)].join("\n");
  const key = scope.split("/").reduce<string | Buffer>((derived, part) => hmac(derived, part), `AWS4${secret}`);
  return hmac(key, text).toString("hex");
}

export interface AccessKey {
  readonly secret: string;
  readonly sessionToken?: string;
}

export type Verdict = { readonly type: string; readonly message: string } | undefined;

const authorization =
  /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8}\/[\w-]+\/[\w-]+\/aws4_request), ?SignedHeaders=([\w;-]+), ?Signature=([\da-f]{64})$/;
const maxSkewMs = 5 * 60_000;

const timeOf = (date: string) =>
  Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));

const invalid = (message: string): Verdict => ({ type: "InvalidSignatureException", message });

/** Returns undefined for a request that is signed as its service requires. */
export function verifySignature(
  request: SignedRequest,
  keys: ReadonlyMap<string, AccessKey>,
  { region, service, now }: { region: string; service: string; now: number },
): Verdict {
  const [, id = "", scope = "", signedHeaders = "", signature] =
    authorization.exec(header(request, "authorization")) ?? [];
  if (signature === undefined)
    return { type: "IncompleteSignatureException", message: "Authorization header requires 'Signature' parameter." };
  const key = keys.get(id);
  const token = request.headers["x-amz-security-token"];
  if (!key || token !== key.sessionToken)
    return {
      type: "UnrecognizedClientException",
      message: "The security token included in the request is invalid.",
    };
  const date = header(request, "x-amz-date");
  const [day, ...place] = scope.split("/");
  if (place.join("/") !== `${region}/${service}/aws4_request`)
    return invalid(`Credential should be scoped to a valid region, and to the service '${service}'.`);
  const time = timeOf(date);
  if (day !== date.slice(0, 8) || Number.isNaN(time)) return invalid("Date in Credential scope does not match.");
  if (Math.abs(now - time) > maxSkewMs)
    return invalid(`Signature expired: ${date} is now earlier than ${new Date(now - maxSkewMs).toISOString()}`);
  const names = signedHeaders.split(";");
  const needed = ["host", ...Object.keys(request.headers).filter((name) => name.startsWith("x-amz-"))];
  if (!needed.every((name) => names.includes(name))) return invalid("'Host' and all 'x-amz-' headers must be signed.");
  const hash = request.headers["x-amz-content-sha256"];
  const isWrong = hash !== undefined && hash !== sha256(request.bytes);
  if (isWrong || signature !== signatureOf(request, key.secret, scope, signedHeaders))
    return invalid(
      "The request signature we calculated does not match the signature you provided. The Canonical String for this " +
        `request should have been 'POST\nx-amz-security-token:${String(token)}'`,
    );
  return undefined;
}
