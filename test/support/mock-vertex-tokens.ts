import { generateKeyPairSync, randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { decodeProtectedHeader, importPKCS8, importSPKI, jwtVerify, SignJWT } from "jose";
import { mockErrorInfo, mockGeminiError } from "./mock-gemini.ts";
import { type MockProvider, type MockRequest, startMockProvider, type Usual } from "./mock-provider.ts";

/**
 * The servers of Google that issue access tokens, all at one address: the token endpoint for keys of service accounts
 * (`/token`), the security token service for workload identity federation (`/v1/token`), the tokens of impersonated service
 * accounts, and the metadata server. A token is valid for an hour. Each request is verified with `jose`, independently of the
 * code under test.
 */
export const mockProject = "acme-prod";
const email = "caller@acme-prod.iam.gserviceaccount.com";
/** The path at which the service account is impersonated. */
export const mockImpersonation = `/v1/projects/-/serviceAccounts/${email}:generateAccessToken`;
const keyId = "0123456789abcdef0123456789abcdef01234567";
const scope = "https://www.googleapis.com/auth/cloud-platform";
/** Google's own address, wherever the request is sent. */
const tokenAudience = "https://oauth2.googleapis.com/token";

const pair = (modulusLength = 2_048) =>
  generateKeyPairSync("rsa", {
    modulusLength,
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
const accountKey = pair();
const platformKey = pair();

/** The key file of a service account, as Google's console creates it. Its addresses are traps. */
export const mockAccountWith = (more: Readonly<Record<string, unknown>> = {}): string =>
  JSON.stringify({
    type: "service_account",
    project_id: mockProject,
    private_key_id: keyId,
    private_key: accountKey.privateKey,
    client_email: email,
    client_id: "100000000000000000000",
    auth_uri: "https://accounts.google.com/o/oauth2/auth",
    token_uri: "http://127.0.0.1:1/steal",
    universe_domain: "attacker.example",
    ...more,
  });
export const mockAccount = mockAccountWith();
export const mockPrivateKey = (modulusLength: number): string => pair(modulusLength).privateKey;

export const mockPoolAudience =
  "//iam.googleapis.com/projects/123/locations/global/workloadIdentityPools/pool/providers/cluster";
const issuer = "https://cluster.example";

/** The token that the workload's own platform puts into its file. */
export const mockSubjectToken = async (issuedAtMs: number): Promise<string> =>
  new SignJWT({ sub: "system:serviceaccount:prod:workers" })
    .setProtectedHeader({ alg: "RS256", kid: "cluster" })
    .setIssuer(issuer)
    .setAudience(mockPoolAudience)
    .setIssuedAt(Math.floor(issuedAtMs / 1000))
    .setExpirationTime(Math.floor(issuedAtMs / 1000) + 600)
    .sign(await importPKCS8(platformKey.privateKey, "RS256"));

const lifetimeSeconds = 3_599;
const skewSeconds = 300;

export interface MockTokens extends MockProvider {
  /** The refusal of a request to the API without a valid access token. */
  refusalOf(headers: IncomingHttpHeaders): Usual | undefined;
  /** Makes all tokens invalid. */
  revoke(): void;
}

export async function startMockTokens(now: () => number): Promise<MockTokens> {
  const issued = new Map<string, { readonly expiresAt: number; readonly kind: "access" | "federated" }>();
  const issue = (kind: "access" | "federated" = "access") => {
    const token = `ya29.c.${randomUUID()}`;
    issued.set(token, { kind, expiresAt: now() + lifetimeSeconds * 1_000 });
    return token;
  };
  const at = () => ({ currentDate: new Date(now()), clockTolerance: skewSeconds, algorithms: ["RS256"] });

  async function accountGrant(form: URLSearchParams): Promise<Usual> {
    if (form.get("grant_type") !== "urn:ietf:params:oauth:grant-type:jwt-bearer")
      return oauthError("unsupported_grant_type", `Invalid grant_type: ${form.get("grant_type")}`);
    const assertion = form.get("assertion") ?? "";
    try {
      if (decodeProtectedHeader(assertion).kid !== keyId)
        return oauthError("invalid_grant", "Invalid JWT: unknown kid.");
      const { payload } = await jwtVerify(assertion, await publicKey(accountKey.publicKey), {
        ...at(),
        issuer: email,
        audience: tokenAudience,
        requiredClaims: ["iat", "exp"],
        maxTokenAge: 3_600,
      });
      if ((payload.exp ?? 0) - (payload.iat ?? 0) > 3_600)
        return oauthError("invalid_grant", "Invalid JWT: Token must be a short-lived token (60 minutes).");
      if (payload["scope"] !== scope) return oauthError("invalid_scope", "Invalid OAuth scope or ID token audience.");
    } catch (error) {
      return oauthError("invalid_grant", `Invalid JWT Signature. ${(error as Error).message} ${assertion}`);
    }
    return { body: { access_token: issue(), expires_in: lifetimeSeconds, token_type: "Bearer" } };
  }

  async function exchange({ headers, bytes }: MockRequest): Promise<Usual> {
    const form = new URLSearchParams(bytes.toString());
    if (headers["x-forwarded-for"] !== undefined) return oauthError("invalid_request", "A forwarded request.");
    const needed = {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
      subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
      audience: mockPoolAudience,
      scope,
    };
    const wrong = Object.entries(needed).find(([field, value]) => form.get(field) !== value)?.[0];
    if (wrong !== undefined) return oauthError("invalid_request", `Invalid value for "${wrong}".`);
    try {
      const verified = { ...at(), issuer, audience: mockPoolAudience };
      await jwtVerify(form.get("subject_token") ?? "", await publicKey(platformKey.publicKey), verified);
    } catch (error) {
      return oauthError("invalid_grant", `The subject token is not valid: ${(error as Error).message}`);
    }
    const issued_token_type = needed.requested_token_type;
    const access_token = issue("federated");
    return { body: { access_token, issued_token_type, token_type: "Bearer", expires_in: lifetimeSeconds } };
  }

  function impersonate({ headers, body }: MockRequest): Usual {
    const held = issued.get(bearerOf(headers) ?? "");
    if (held?.kind !== "federated") return mockGeminiError(401, "Request had invalid authentication credentials.");
    if (JSON.stringify(body["scope"]) !== JSON.stringify([scope]) || body["lifetime"] !== "3600s")
      return mockGeminiError(400, "Invalid scope or lifetime.");
    const expireTime = new Date(now() + 3_600_000).toISOString();
    return { body: { accessToken: issue(), expireTime } };
  }

  function metadata({ headers }: MockRequest): Usual {
    const server = { "metadata-flavor": "Google", server: "Metadata Server for VM" };
    if (headers["metadata-flavor"] !== "Google" || headers["x-forwarded-for"] !== undefined)
      return { status: 403, headers: { ...server, "content-type": "text/html" }, body: "Forbidden" };
    return { headers: server, body: { access_token: issue(), expires_in: lifetimeSeconds, token_type: "Bearer" } };
  }

  const server = await startMockProvider({
    headers: { server: "ESF" },
    frame: () => "",
    async usual(request) {
      const route = `${request.method} ${request.path.split("?", 1)[0]}`;
      if (route === "POST /token") return accountGrant(formOf(request));
      if (route === "POST /v1/token") return exchange(request);
      if (route === `POST ${mockImpersonation}`) return impersonate(request);
      if (route === "GET /computeMetadata/v1/instance/service-accounts/default/token") return metadata(request);
      return { status: 404, body: "Not Found" };
    },
  });
  return Object.assign(server, {
    refusalOf(headers: IncomingHttpHeaders): Usual | undefined {
      const token = bearerOf(headers);
      if (headers["x-goog-api-key"] !== undefined || token === undefined)
        return mockGeminiError(
          401,
          "API keys are not supported by this API. Expected OAuth2 access token or other authentication credentials that assert a principal.",
          { details: [mockErrorInfo("CREDENTIALS_MISSING")] },
        );
      const held = issued.get(token);
      if (held && held.expiresAt > now()) return undefined;
      return mockGeminiError(401, "Request had invalid authentication credentials. Expected OAuth 2 access token.", {
        details: [mockErrorInfo(held ? "ACCESS_TOKEN_EXPIRED" : "ACCESS_TOKEN_TYPE_UNSUPPORTED")],
      });
    },
    revoke: () => issued.clear(),
  });
}

const bearerOf = ({ authorization }: IncomingHttpHeaders) => /^Bearer (.+)$/.exec(authorization ?? "")?.[1];

const formOf = ({ headers, bytes }: MockRequest) =>
  new URLSearchParams(headers["content-type"]?.startsWith("application/x-www-form-urlencoded") ? bytes.toString() : "");

const oauthError = (error: string, error_description: string): Usual => ({
  status: error === "invalid_client" ? 401 : 400,
  body: { error, error_description },
});

const publicKey = (pem: string) => importSPKI(pem, "RS256");
