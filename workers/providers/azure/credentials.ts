import { readFile } from "node:fs/promises";
import { ClientSecretPost } from "oauth4webapi";
import { z } from "zod";
import type { Clock } from "#platform/clock";
import { ConfigError } from "#platform/config-error";
import type { Environment } from "#platform/process/secret-files";
import { connectTokenEndpoint, createTokens, type Grant } from "../http/tokens.ts";
import { UpstreamFailure } from "../provider.ts";

/** An application of Entra ID, which proves itself with a secret or with the token in a file. */
interface Application {
  /** A GUID or a domain. */
  readonly tenantId: string;
  readonly clientId: string;
  readonly secret?: string | undefined;
  readonly assertionFile?: string | undefined;
}

export type Credential = { readonly key: string } | Application;

/** These become a part of the token server's path. */
const name = z.string().regex(/^[A-Za-z0-9][\w.-]{0,127}$/, "is not a GUID or a name");
const secret = z.string().min(1, "is empty").max(1_024, "is too long");
const application = z.strictObject({ tenant_id: name, client_id: name, client_secret: secret });

const invalid = (message: string) => new ConfigError(`credential of Azure: ${message}`);

/**
 * Reads a key, the JSON of an application with `tenant_id`, `client_id` and `client_secret`, or the word `identity`: the
 * application of this machine, in the variables that Azure's own clients read. Without `env` there is no such application.
 * Throws ConfigError, whose text does not contain the credential.
 */
export function readCredential(given: string, env: Environment | undefined): Credential {
  const credential = given.trim();
  if (credential === "identity") {
    if (env === undefined) throw invalid("must be a key or an application, not the identity of a machine");
    return identityOf(env);
  }
  if (!credential.startsWith("{")) {
    if (/^[\x21-\x7e]{1,1024}$/.test(credential)) return { key: credential };
    throw invalid("is not a key: it contains characters that a header cannot");
  }
  const parsed = application.safeParse(parse(credential));
  if (!parsed.success) throw invalid(parsed.error.issues.map(faultOf).join("; "));
  const { tenant_id: tenantId, client_id: clientId, client_secret } = parsed.data;
  return { tenantId, clientId, secret: client_secret };
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    throw invalid("is not valid JSON");
  }
}

/** Names of fields that are not known may be secrets in the wrong place. */
const faultOf = ({ code, path, message }: z.core.$ZodIssue): string =>
  code === "unrecognized_keys"
    ? "has fields other than tenant_id, client_id and client_secret"
    : `${path.join(".")} ${code === "invalid_type" ? "is missing, or is not a text" : message}`;

/** https://azure.github.io/azure-workload-identity/docs/ and https://learn.microsoft.com/azure/developer/intro/passwordless-overview */
function identityOf(env: Environment): Application {
  const { AZURE_TENANT_ID, AZURE_CLIENT_ID, AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_SECRET } = env;
  const ids = z
    .object({ AZURE_TENANT_ID: name, AZURE_CLIENT_ID: name })
    .safeParse({ AZURE_TENANT_ID, AZURE_CLIENT_ID });
  if (!ids.success) throw invalid(`identity needs variables: ${ids.error.issues.map(faultOf).join("; ")}`);
  const found = { tenantId: ids.data.AZURE_TENANT_ID, clientId: ids.data.AZURE_CLIENT_ID };
  if (AZURE_FEDERATED_TOKEN_FILE) return { ...found, assertionFile: AZURE_FEDERATED_TOKEN_FILE };
  if (AZURE_CLIENT_SECRET) return { ...found, secret: AZURE_CLIENT_SECRET };
  throw invalid("identity needs the variable AZURE_FEDERATED_TOKEN_FILE or AZURE_CLIENT_SECRET");
}

const defaultAuthority = "https://login.microsoftonline.com";

/** `hosts` is the operator's environment, which may name another token server. */
export function tokensOf(
  application: Application,
  { scope, clock, hosts = {} }: { scope: string; clock: Clock; hosts: Environment | undefined },
) {
  const authority = hosts["AZURE_AUTHORITY_HOST"] || defaultAuthority;
  if (!/^https?:$/.test(URL.parse(authority)?.protocol ?? ""))
    throw new ConfigError("AZURE_AUTHORITY_HOST: not an http or https address");
  const url = `${authority.replace(/\/$/, "")}/${application.tenantId}/oauth2/v2.0/token`;
  const endpoint = connectTokenEndpoint(url, clock);
  const tokens = createTokens(async (signal) => endpoint.request(await grantOf(application, scope), signal), clock);
  return { ...tokens, close: () => endpoint.close() };
}

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

async function grantOf({ clientId, secret: given, assertionFile }: Application, scope: string): Promise<Grant> {
  const grant = { type: "client_credentials", clientId } as const;
  if (given !== undefined) return { ...grant, authentication: ClientSecretPost(given), fields: { scope } };
  const assertion = { client_assertion_type: assertionType, client_assertion: await read(assertionFile ?? "") };
  return { ...grant, fields: { scope, client_id: clientId, ...assertion } };
}

/** The file is read for each token, because the platform replaces its content. */
async function read(file: string): Promise<string> {
  const content = await readFile(file, "utf8").catch(({ code = "unknown error" }: NodeJS.ErrnoException) => {
    throw new UpstreamFailure("misconfigured", `AZURE_FEDERATED_TOKEN_FILE cannot be read: ${code}`);
  });
  if (content.trim() !== "") return content.trim();
  throw new UpstreamFailure("misconfigured", "the file of AZURE_FEDERATED_TOKEN_FILE is empty");
}
