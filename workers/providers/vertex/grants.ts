import { sign } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type JsonObject, text } from "#json";
import type { Clock } from "#platform/clock";
import { createHttpClient, type HttpAnswer, type HttpRequest, NotConnected } from "#platform/http";
import { failureOf } from "../http/failures.ts";
import { errorLimitBytes, readText, throwFailure } from "../http/read-answer.ts";
import { type AccessToken, connectTokenEndpoint } from "../http/tokens.ts";
import { parseAnswer } from "../http/untrusted-json.ts";
import { UpstreamFailure } from "../provider.ts";
import type { Credential, ExternalAccount, ServiceAccount } from "./credentials.ts";

/** Gets a new access token. Closing aborts the requests that are under way. */
export interface TokenSource {
  fetch(signal: AbortSignal): Promise<AccessToken>;
  close(): Promise<void>;
}

const googleTokenUrl = "https://oauth2.googleapis.com/token";
const scope = "https://www.googleapis.com/auth/cloud-platform";
const lifetimeSeconds = 3_600;
const grantType = "urn:ietf:params:oauth:grant-type:";

/** `tokenUrl` is the operator's substitute for Google's token endpoint. */
export function tokenSource(
  credential: Exclude<Credential, { readonly type: "api_key" }>,
  clock: Clock,
  tokenUrl = googleTokenUrl,
): TokenSource {
  switch (credential.type) {
    case "service_account":
      return serviceAccountTokens(credential, clock, tokenUrl);
    case "external_account":
      return federatedTokens(credential, clock);
    case "metadata":
      return metadataTokens(credential.host, clock);
  }
}

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** https://developers.google.com/identity/protocols/oauth2/service-account */
function serviceAccountTokens(account: ServiceAccount, clock: Clock, tokenUrl: string): TokenSource {
  const endpoint = connectTokenEndpoint(tokenUrl, clock);
  const signedClaims = () => {
    const iat = Math.floor(clock.now() / 1000);
    const header = { alg: "RS256", typ: "JWT", kid: account.keyId };
    // The audience is Google's own address even if a proxy is in front of it.
    const claims = { iss: account.email, scope, aud: googleTokenUrl, iat, exp: iat + lifetimeSeconds };
    const unsigned = `${base64url(header)}.${base64url(claims)}`;
    return `${unsigned}.${sign("RSA-SHA256", Buffer.from(unsigned), account.privateKey).toString("base64url")}`;
  };
  return {
    fetch: async (signal) =>
      endpoint.request(
        { type: `${grantType}jwt-bearer`, clientId: account.email, fields: { assertion: signedClaims() } },
        signal,
      ),
    close: () => endpoint.close(),
  };
}

/** https://google.aip.dev/auth/4117 */
function federatedTokens(account: ExternalAccount, clock: Clock): TokenSource {
  const endpoint = connectTokenEndpoint(account.tokenUrl, clock);
  const impersonation = account.impersonationUrl === undefined ? undefined : connect(account.impersonationUrl, clock);
  return {
    async fetch(signal) {
      const fields = {
        audience: account.audience,
        scope,
        requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
        subject_token: await subjectToken(account),
        subject_token_type: account.subjectTokenType,
      };
      const federated = await endpoint.request(
        { type: `${grantType}token-exchange`, clientId: account.audience, fields },
        signal,
      );
      if (!impersonation) return federated;
      const headers = { authorization: `Bearer ${federated.value}`, "content-type": "application/json" };
      const body = JSON.stringify({ scope: [scope], lifetime: `${lifetimeSeconds}s` });
      const { accessToken, expireTime } = await impersonation.send({ method: "POST", headers, body }, signal);
      return tokenOf(accessToken, Date.parse(text(expireTime)) - clock.now());
    },
    async close() {
      await Promise.all([endpoint.close(), impersonation?.close()]);
    },
  };
}

/** The platform replaces the file's content before the token in it expires. */
async function subjectToken({ file, field }: ExternalAccount): Promise<string> {
  let token = "";
  try {
    const content = await readFile(file, "utf8");
    token = field === undefined ? content.trim() : text((JSON.parse(content) as JsonObject)[field]);
  } catch {}
  if (token !== "") return token;
  throw new UpstreamFailure("misconfigured", "the file with the workload's token is missing, or has no token");
}

const metadataPath = "/computeMetadata/v1/instance/service-accounts/default/token";

/** https://cloud.google.com/compute/docs/access/authenticate-workloads */
function metadataTokens(host: string, clock: Clock): TokenSource {
  const server = connect(`http://${host}${metadataPath}?scopes=${encodeURIComponent(scope)}`, clock);
  return {
    async fetch(signal) {
      const headers = { "metadata-flavor": "Google" };
      const { access_token, expires_in } = await server.send({ method: "GET", headers }, signal);
      return tokenOf(access_token, Number(expires_in) * 1_000);
    },
    close: () => server.close(),
  };
}

function tokenOf(value: unknown, lifetimeMs: number): AccessToken {
  if (text(value) !== "" && lifetimeMs > 0) return { value: text(value), lifetimeMs };
  throw new UpstreamFailure("unavailable", "an answer without an access token");
}

/** One address that answers in JSON. */
function connect(address: string, clock: Clock) {
  const { origin, pathname, search, host } = new URL(address);
  const http = createHttpClient({ origin, connections: 1, clock });
  return {
    async send(request: Omit<HttpRequest, "path" | "signal">, signal: AbortSignal): Promise<JsonObject> {
      const answer = await http
        .send({ ...request, path: pathname + search, signal })
        .catch((error: unknown) => refuseConnection(error, host, signal));
      const body = await readText(answer, errorLimitBytes, signal);
      if (answer.status === 200) return parseAnswer(body);
      throw refused(answer, host, clock);
    },
    close: () => http.close(),
  };
}

function refuseConnection(error: unknown, host: string, signal: AbortSignal): never {
  if (!(error instanceof NotConnected)) return throwFailure(error, signal);
  throw new UpstreamFailure("unavailable", `${host}: ${error.code ?? error.message}`, { unreachable: true });
}

function refused({ status, headers }: HttpAnswer, host: string, clock: Clock): UpstreamFailure {
  const { kind, retryAfterMs } = failureOf(status, headers, undefined, clock);
  const message = `${host} gave no access token: status ${status}`;
  return new UpstreamFailure(kind === "refused" ? "misconfigured" : kind, message, { status, retryAfterMs });
}
