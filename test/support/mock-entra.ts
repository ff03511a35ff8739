import { createHash, generateKeyPairSync, randomUUID } from "node:crypto";
import { jwtVerify, SignJWT } from "jose";
import type { MockRequest, Usual } from "./mock-provider.ts";

/**
 * Microsoft's token server with one tenant and one application, which has a client secret and trusts the tokens of one
 * Kubernetes cluster: https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow.
 */

export const mockTenant = "0f5b1c9e-1d2f-4c3a-8b4d-5e6f7a8b9c0d";
export const mockApplication = "9a8b7c6d-5e4f-4a3b-2c1d-0e9f8a7b6c5d";
export const mockSecret = "Qx8Q~client-secret.of_the-application";

const issuer = "https://cluster.example.com/";
const subject = "system:serviceaccount:inference:worker";
const exchange = "api://AzureADTokenExchange";
const cluster = generateKeyPairSync("rsa", { modulusLength: 2048 });
const tenant = generateKeyPairSync("rsa", { modulusLength: 2048 });

/** The token that Kubernetes projects into the worker's file. */
export const federatedToken = ({ audience = exchange, expires = "1h" } = {}): Promise<string> =>
  new SignJWT({})
    .setProtectedHeader({ alg: "RS256" })
    .setIssuer(issuer)
    .setSubject(subject)
    .setAudience(audience)
    .setJti(randomUUID())
    .setIssuedAt(Math.floor(Date.now() / 1000) - 7_200)
    .setExpirationTime(expires)
    .sign(cluster.privateKey);

const refusal = (status: number, error: string, number: number, text: string): Usual => ({
  status,
  body: {
    error,
    error_description: `AADSTS${number}: ${text} Trace ID: ${randomUUID()} Correlation ID: ${randomUUID()} Timestamp: 2026-11-23 10:00:00Z`,
    error_codes: [number],
    timestamp: "2026-11-23 10:00:00Z",
    trace_id: randomUUID(),
    correlation_id: randomUUID(),
    error_uri: `https://login.microsoftonline.com/error?code=${number}`,
  },
});

const audiences: Readonly<Record<string, string>> = {
  "https://ai.azure.com/.default": "https://ai.azure.com",
  "https://cognitiveservices.azure.com/.default": "https://cognitiveservices.azure.com",
};

export function createMockEntra() {
  /** Tokens that no longer count, by their hash. */
  const revoked = new Set<string>();
  const issued: string[] = [];
  const hash = (token: string) => createHash("sha256").update(token).digest("hex");

  /** Refuses as the server does, or undefined for a request that is valid but for its assertion. */
  function refusalOf({ method, path, headers }: MockRequest, form: URLSearchParams): Usual | undefined {
    const [, named] = /^\/([^/]+)\/oauth2\/v2\.0\/token$/.exec(path) ?? [];
    if (named === undefined || method !== "POST") return { status: 404, body: "" };
    if (!headers["content-type"]?.startsWith("application/x-www-form-urlencoded"))
      return refusal(
        400,
        "invalid_request",
        900144,
        "The request body must contain the following parameter: 'grant_type'.",
      );
    if (named !== mockTenant) return refusal(400, "invalid_request", 90002, `Tenant '${named}' not found.`);
    if (form.get("grant_type") !== "client_credentials")
      return refusal(400, "unsupported_grant_type", 70003, "The app requested an unsupported grant type.");
    const client = form.get("client_id");
    if (client !== mockApplication)
      return refusal(400, "unauthorized_client", 700016, `Application with identifier '${client}' was not found.`);
    const scope = form.get("scope") ?? "";
    if (!scope.endsWith("/.default"))
      return refusal(400, "invalid_scope", 1002012, `The provided value for scope ${scope} is not valid.`);
    if (!(scope in audiences))
      return refusal(400, "invalid_resource", 500011, `The resource principal named ${scope} was not found.`);
    if (form.has("client_assertion")) return undefined;
    if (!form.has("client_secret"))
      return refusal(
        401,
        "invalid_client",
        7000218,
        "The request body must contain 'client_assertion' or 'client_secret'.",
      );
    return form.get("client_secret") === mockSecret
      ? undefined
      : refusal(401, "invalid_client", 7000215, `Invalid client secret provided: '${form.get("client_secret")}'.`);
  }

  async function refusalOfAssertion(form: URLSearchParams): Promise<Usual | undefined> {
    const assertion = form.get("client_assertion");
    if (assertion === null) return undefined;
    if (form.get("client_assertion_type") !== "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
      return refusal(400, "invalid_request", 900144, "The request body must contain 'client_assertion_type'.");
    try {
      await jwtVerify(assertion, cluster.publicKey, { issuer, subject, audience: exchange });
      return undefined;
    } catch (error) {
      return (error as { code?: string }).code === "ERR_JWT_EXPIRED"
        ? refusal(401, "invalid_client", 700024, "Client assertion is not within its valid time range.")
        : refusal(401, "invalid_client", 700213, `No matching federated identity record found for ${assertion}.`);
    }
  }

  return {
    issued,
    revokeAll: () => {
      for (const token of issued) revoked.add(hash(token));
    },
    async answer(request: MockRequest): Promise<Usual> {
      const form = new URLSearchParams(request.bytes.toString("utf8"));
      const refused = refusalOf(request, form) ?? (await refusalOfAssertion(form));
      if (refused) return refused;
      const token = await new SignJWT({ appid: mockApplication, jti: randomUUID() })
        .setProtectedHeader({ alg: "RS256" })
        .setIssuer(`https://login.microsoftonline.com/${mockTenant}/v2.0`)
        .setAudience(audiences[form.get("scope") ?? ""] ?? "")
        .setIssuedAt()
        .setExpirationTime("3599s")
        .sign(tenant.privateKey);
      issued.push(token);
      return { body: { token_type: "Bearer", expires_in: 3599, ext_expires_in: 3599, access_token: token } };
    },
    /** Tells whether a resource accepts the token for this audience. */
    async accepts(token: string, audience: string): Promise<boolean> {
      if (revoked.has(hash(token))) return false;
      return jwtVerify(token, tenant.publicKey, { audience }).then(
        () => true,
        () => false,
      );
    },
  };
}
