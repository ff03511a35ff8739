import { defaultProvider } from "@aws-sdk/credential-provider-node";
import { Sha256 } from "@smithy/core/checksum";
import { SignatureV4 } from "@smithy/signature-v4";
import { z } from "zod";
import type { Clock } from "#platform/clock";
import { unlessAborted } from "#platform/concurrency/unless-aborted";
import { configError } from "#platform/config-error";
import type { Environment } from "#platform/process/secret-files";
import type { SignableRequest } from "../http/provider-client.ts";
import { type UpstreamEndpoint, UpstreamFailure } from "../provider.ts";

const visible = /^[\x21-\x7e]+$/;

const accessKey = z.strictObject({
  access_key_id: z.string().regex(/^\w{1,128}$/),
  secret_access_key: z.string().regex(visible).max(256),
  session_token: z.string().regex(visible).max(16_384).optional(),
});

interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

type Credential =
  | { readonly type: "none" | "identity" }
  | { readonly type: "api-key"; readonly key: string }
  | { readonly type: "access-key"; readonly credentials: AwsCredentials };

/** Returns undefined if the text has none of the forms. */
function credentialOf(given: string | undefined): Credential | undefined {
  if (given === undefined) return { type: "none" };
  if (given === "identity") return { type: "identity" };
  if (!given.startsWith("{"))
    return visible.test(given) && given.length <= 16_384 ? { type: "api-key", key: given } : undefined;
  try {
    const { access_key_id, secret_access_key, session_token } = accessKey.parse(JSON.parse(given));
    const session = session_token === undefined ? {} : { sessionToken: session_token };
    return {
      type: "access-key",
      credentials: { accessKeyId: access_key_id, secretAccessKey: secret_access_key, ...session },
    };
  } catch {
    return undefined;
  }
}

const forms =
  "a credential of AWS must be an API key of Bedrock, a JSON object with access_key_id, secret_access_key and perhaps " +
  "session_token, or the word identity";

type CredentialSource = () => Promise<AwsCredentials>;

/**
 * The credentials of the machine, renewed within 5 minutes of their end; calls that wait share one request. The library
 * reads only two things from `process.env` itself: whether there is a container's endpoint, and the address of the metadata
 * service. Everything else comes from `env`, which has secrets from files in addition.
 */
function machineIdentity(env: Environment, region: string): CredentialSource {
  const { AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN } = env;
  if (!AWS_PROFILE && AWS_ACCESS_KEY_ID && AWS_SECRET_ACCESS_KEY)
    return async () => ({
      accessKeyId: AWS_ACCESS_KEY_ID,
      secretAccessKey: AWS_SECRET_ACCESS_KEY,
      ...(AWS_SESSION_TOKEN && { sessionToken: AWS_SESSION_TOKEN }),
    });
  const given = {
    webIdentityTokenFile: env["AWS_WEB_IDENTITY_TOKEN_FILE"],
    roleArn: env["AWS_ROLE_ARN"],
    roleSessionName: env["AWS_ROLE_SESSION_NAME"],
    filepath: env["AWS_SHARED_CREDENTIALS_FILE"],
    configFilepath: env["AWS_CONFIG_FILE"],
    awsContainerCredentialsFullUri: env["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
    awsContainerCredentialsRelativeUri: env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
    awsContainerAuthorizationToken: env["AWS_CONTAINER_AUTHORIZATION_TOKEN"],
    awsContainerAuthorizationTokenFile: env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"],
  };
  const endpoint = env["AWS_ENDPOINT_URL_STS"];
  return defaultProvider({
    ...Object.fromEntries(Object.entries(given).filter(([, value]) => value)),
    // A named profile keeps the library from reading keys out of process.env.
    profile: AWS_PROFILE || "default",
    clientConfig: { region, ...(endpoint && { endpoint }) },
    logger: silent,
  });
}

const ignore = () => {};
/** Without a logger the library writes warnings to the console. */
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** The library's messages may quote what it read, so only the name of an error is shown. */
function identityFailure(error: unknown): UpstreamFailure {
  const { name, $fault } = error as Error & { readonly $fault?: string };
  const isDenied = name === "CredentialsProviderError" || $fault === "client";
  return new UpstreamFailure(isDenied ? "misconfigured" : "unavailable", `no credentials of AWS: ${name}`);
}

const identityMs = 10_000;

/** The library waits for a silent server without end, and every later call with it, so the next call then starts anew. */
function identitySource(env: Environment, { region, clock }: { region: string; clock: Clock }): CredentialSource {
  let source = machineIdentity(env, region);
  return async () => {
    const asked = source;
    const limit = new AbortController();
    const cancel = clock.after(identityMs, () =>
      limit.abort(new UpstreamFailure("timeout", `no credentials of AWS within ${identityMs} ms`)),
    );
    try {
      return await unlessAborted(limit.signal, asked);
    } catch (error) {
      if (!limit.signal.aborted) throw identityFailure(error);
      if (source === asked) source = machineIdentity(env, region);
      throw error;
    } finally {
      cancel();
    }
  };
}

/** Signs requests to a service (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html). */
export function createSigner(
  credentials: AwsCredentials | CredentialSource,
  { region, service, clock }: { region: string; service: string; clock: Clock },
) {
  const signer = new SignatureV4({ credentials, region, service, sha256: Sha256, applyChecksum: false });
  return async ({ method, url, headers, body }: Omit<SignableRequest, "body"> & { body?: string | undefined }) => {
    const { protocol, host, hostname, pathname, searchParams } = url;
    const query: Record<string, string[]> = {};
    for (const [name, value] of searchParams) (query[name] ??= []).push(value);
    const request = { method, protocol, hostname, path: pathname, query, headers: { host, ...headers }, body };
    const signed = await signer.sign(request, { signingDate: new Date(clock.now()) });
    return signed.headers;
  };
}

const hexDigest = async (bytes: Buffer): Promise<string> =>
  // Not on the main thread, because a body may have many megabytes.
  Buffer.from(await crypto.subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>)).toString("hex");

/** Headers that a signature adds to a request. */
const signatureHeaders = ["authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"] as const;

type Authorize = (request: SignableRequest, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;

function signing(source: AwsCredentials | CredentialSource, options: Parameters<typeof createSigner>[1]): Authorize {
  const sign = createSigner(source, options);
  return async ({ method, url, headers, body }) => {
    const type = headers["content-type"];
    const signed = await sign({
      method,
      url,
      headers: {
        ...(type !== undefined && { "content-type": type }),
        "x-amz-content-sha256": await hexDigest(body ?? Buffer.alloc(0)),
      },
    });
    return Object.fromEntries(
      signatureHeaders.flatMap((name) => (signed[name] === undefined ? [] : [[name, signed[name]]])),
    );
  };
}

/**
 * Authorizes requests by the credential of an upstream. Throws ConfigError for an operator's credential that has none of the
 * forms; a customer's fails with `UpstreamFailure` when it is used.
 */
export function authorization(
  { apiKey, env }: Pick<UpstreamEndpoint, "apiKey" | "env">,
  options: Parameters<typeof createSigner>[1],
): Authorize {
  const credential = credentialOf(apiKey);
  if (!credential && env) throw configError(forms);
  if (!credential) return () => Promise.reject(new UpstreamFailure("misconfigured", forms));
  switch (credential.type) {
    case "none":
      return () => Promise.resolve({});
    case "api-key": {
      const headers = { authorization: `Bearer ${credential.key}` };
      return () => Promise.resolve(headers);
    }
    case "access-key":
      return signing(credential.credentials, options);
    case "identity": {
      if (!env)
        return () =>
          Promise.reject(new UpstreamFailure("misconfigured", "only the operator can use the identity of the machine"));
      const authorize = signing(identitySource(env, options), options);
      return (request, signal) => unlessAborted(signal, () => authorize(request, signal));
    }
  }
}
