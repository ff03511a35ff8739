/**
 * Adapters for the vendors' APIs, keyed by the provider that an upstream of the catalog names. provider.ts has the
 * interface, its units and failures; `http` is shared by all adapters that speak HTTP, `prediction-apis` by those that run
 * other vendors' models as jobs. A new provider takes a folder, a line here, and its name in the catalog's schema.
 */
import type { Upstream } from "#catalog";
import type { Clock } from "#platform/clock";
import type { Environment } from "#platform/process/secret-files";
import type { Counting } from "../counting/index.ts";
import { createAnthropic } from "./anthropic/index.ts";
import { createAzure } from "./azure/index.ts";
import { createBedrock } from "./bedrock/index.ts";
import { createFal } from "./fal/index.ts";
import { createGemini } from "./gemini/index.ts";
import { createLocal } from "./local/index.ts";
import { createOpenai } from "./openai/index.ts";
import type { Provider, UpstreamEndpoint } from "./provider.ts";
import { createReplicate } from "./replicate/index.ts";
import { createVertex } from "./vertex/index.ts";

export { answerMemory } from "./http/read-answer.ts";
export { vectorValues } from "./http/untrusted-json.ts";
export {
  type Generated,
  type GenerationCall,
  type InputFile,
  type Provider,
  type TextCall,
  UpstreamFailure,
} from "./provider.ts";

interface Deps {
  readonly clock: Clock;
  readonly counting: Counting;
  /**
   * The operator's environment, in which adapters read the addresses of token servers, also for the keys of customers. The
   * endpoint's own environment if it is not set.
   */
  readonly hosts?: Environment;
}

type Factory = (target: UpstreamEndpoint, deps: Deps) => Provider;

export const providers: Readonly<Record<Upstream["provider"], Factory>> = {
  openai: createOpenai,
  anthropic: createAnthropic,
  gemini: createGemini,
  azure: createAzure,
  bedrock: createBedrock,
  vertex: createVertex,
  replicate: createReplicate,
  fal: createFal,
  local: (_, deps) => createLocal(deps),
};
