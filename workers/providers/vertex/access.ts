import { regionPattern } from "#catalog";
import { versioned } from "../http/provider-client.ts";
import type { UpstreamEndpoint } from "../provider.ts";
import { type Credential, InvalidAccess, readCredential } from "./credentials.ts";

export interface Access {
  /** Below it are the paths of models. */
  readonly baseUrl: string;
  readonly credential: Credential;
}

const googleHost = "aiplatform.googleapis.com";

/** The host that serves a location: https://docs.cloud.google.com/vertex-ai/generative-ai/docs/learn/locations */
function hostOf(location: string): string {
  if (location === "global") return googleHost;
  if (location === "us" || location === "eu") return `aiplatform.${location}.rep.googleapis.com`;
  return `${location}-${googleHost}`;
}

const projectPattern = /^[a-z\d][a-z\d.:-]{0,99}$/;

/** Finds the address and the credential for an upstream's location and project. Throws `InvalidAccess`. */
export function accessOf({
  apiKey,
  env,
  parts,
  baseUrl,
}: Pick<UpstreamEndpoint, "apiKey" | "env" | "parts" | "baseUrl">): Access {
  const credential = readCredential(apiKey, env);
  const { region: location = "global" } = parts;
  if (!regionPattern.test(location)) throw new InvalidAccess("the location is not the name of one");
  // An operator's own address may have the whole path of its location.
  const [, given] = /\/locations\/([^/]+)\/?$/.exec(new URL(baseUrl).pathname) ?? [];
  // Data would be processed elsewhere than the upstream promises.
  if (given !== undefined && given !== location && location !== "global")
    throw new InvalidAccess(`the address has another location than '${location}'; write {region} in its place`);
  if (given !== undefined) return { baseUrl, credential };
  const url = new URL(versioned(baseUrl, "v1"));
  if (url.hostname === googleHost) url.hostname = hostOf(location);
  if (credential.type === "api_key") return { baseUrl: url.href, credential };
  const project = parts.project ?? (credential.type === "service_account" ? credential.project : undefined);
  if (project === undefined || !projectPattern.test(project))
    throw new InvalidAccess("the project is missing, or is not the name of one");
  url.pathname += `/projects/${encodeURIComponent(project)}/locations/${location}`;
  return { baseUrl: url.href, credential };
}
