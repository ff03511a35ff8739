import { filledAddress, type Upstream } from "#catalog";
import type { Environment } from "#platform/process/secret-files";
import type { SealedProviderKey } from "#provider-keys";
import { type UpstreamEndpoint, UpstreamFailure } from "../providers/provider.ts";

/**
 * The upstream with a customer's credential in place of the operator's. The address is the operator's: a customer chooses
 * only its parts, by strict patterns.
 */
export function ownEndpoint(
  upstream: Upstream,
  env: Environment,
  { config }: Pick<SealedProviderKey, "config">,
  credential: string,
): UpstreamEndpoint {
  const { formats, concurrency, storesAnswers, quirks, baseUrlEnv } = upstream;
  const { deployments, ...own } = config;
  const parts = { region: upstream.region, ...own };
  const address = (baseUrlEnv !== undefined && env[baseUrlEnv]) || upstream.baseUrl;
  if (!address) throw new UpstreamFailure("unavailable", "the upstream has no address");
  return {
    formats,
    concurrency,
    storesAnswers,
    quirks,
    baseUrl: filledAddress(address, parts),
    apiKey: credential,
    parts,
    deployments,
    env: undefined,
  };
}
