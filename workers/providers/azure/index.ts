/**
 * Azure OpenAI and Microsoft Foundry, in the formats of the models' vendors: chat, responses, embeddings, images and speech of
 * OpenAI's v1 API (https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle), or of a dated version if the
 * upstream has the quirk `api_version`; and Claude's messages with token counts, which have an address, and so an upstream, of
 * their own. The name of a model is that of its deployment.
 *
 * The credential is a key, the JSON of an application, or the word `identity` (credentials.ts). Throws ConfigError for an
 * operator's credential that cannot be used. Calls with such a key of a customer fail as misconfigured.
 *
 * Annotations of the content filter pass in answers and chunks; those that come in chunks of their own are added to the next
 * one (filter-annotations.ts).
 */
import type { Clock } from "#platform/clock";
import { ConfigError } from "#platform/config-error";
import type { Environment } from "#platform/process/secret-files";
import { anthropicThrough, anthropicVersion } from "../anthropic/index.ts";
import type { failureOf } from "../http/failures.ts";
import { connectProvider, type ProviderClient, type ProviderRequest, versioned } from "../http/provider-client.ts";
import { readStream } from "../http/read-stream.ts";
import { openaiThrough } from "../openai/index.ts";
import { type Provider, type TextCall, type UpstreamEndpoint, UpstreamFailure } from "../provider.ts";
import { readCredential, tokensOf } from "./credentials.ts";
import { annotationJoiner } from "./filter-annotations.ts";

interface Deps {
  readonly clock: Clock;
  /** The operator's environment, in which another token server may be named. */
  readonly hosts?: Environment | undefined;
}

export function createAzure(target: UpstreamEndpoint, { clock, hosts = target.env }: Deps): Provider {
  const { baseUrl, concurrency, formats, quirks, deployments = {} } = target;
  const version = quirks?.api_version;
  const isClaude = formats.includes("messages");
  const access = accessOf(target, { clock, hosts, scope: version === undefined ? scopes.current : scopes.dated });
  const connect = (address: string) =>
    connectProvider(
      {
        baseUrl: address,
        concurrency,
        headers: { ...access.headers, ...(isClaude && { "anthropic-version": anthropicVersion }) },
        ...(access.authorize && { authorize: access.authorize }),
        ...(access.failureOf && { failureOf: access.failureOf }),
      },
      clock,
    );
  const client = connect(isClaude ? versioned(baseUrl, "v1") : baseUrl);
  const common = isClaude ? anthropicThrough(client) : openaiThrough(client, target, readAnnotated);

  /** The provider that serves a call, and the call under the name of its deployment. */
  function at<Call extends { readonly model: string }>(call: Call) {
    const model = deployments[call.model] ?? call.model;
    const body = "body" in call ? { body: { ...(call.body as object), model } } : {};
    const provider =
      version === undefined ? common : openaiThrough(atDeployment(client, model, version), target, readAnnotated);
    return { provider, call: { ...call, ...body, model } };
  }

  const count = common.count?.bind(common);
  return {
    speaks: formats,
    answer(given) {
      const { provider, call } = at(given);
      return provider.answer(call);
    },
    stream(given) {
      const { provider, call } = at(given);
      return provider.stream(call);
    },
    ...(count && { count: (given: TextCall) => count(at(given).call) }),
    async check(call) {
      // Claude's address has no list of models, but its resource has one.
      const { client: lists, path } = isClaude
        ? { client: connect(baseUrl.replace(/\/anthropic(\/v1)?\/?$/, "/openai/v1")), path: "/models" }
        : { client, path: version === undefined ? "/models" : withVersion("/models", version) };
      try {
        const answer = await lists.send({ path }, call);
        await answer.body.return?.();
      } finally {
        if (lists !== client) await lists.close();
      }
    },
    embed(given) {
      const { provider, call } = at(given);
      return provider.embed(call);
    },
    generate(given) {
      const { provider, call } = at(given);
      return provider.generate(call);
    },
    takesLinks: true,
    async close() {
      await Promise.all([client.close(), access.close?.()]);
    },
  };
}

/** Events of responses have no choices, so they pass unchanged. */
const readAnnotated: typeof readStream = (client, request, rules, call) =>
  readStream(client, request, { ...rules, convert: annotationJoiner() }, call);

/** https://github.com/openai/openai-node/blob/master/docs/azure.md */
const scopes = {
  current: "https://ai.azure.com/.default",
  dated: "https://cognitiveservices.azure.com/.default",
};

interface Access {
  readonly headers: Readonly<Record<string, string>>;
  readonly authorize?: (request: unknown, signal: AbortSignal) => Promise<Readonly<Record<string, string>>>;
  readonly failureOf?: typeof failureOf;
  close?(): Promise<void>;
}

function accessOf(
  { apiKey, env }: UpstreamEndpoint,
  options: { clock: Clock; hosts: Environment | undefined; scope: string },
): Access {
  // Without a key the address is that of a proxy with a credential of its own.
  if (apiKey === undefined) return { headers: {} };
  try {
    const credential = readCredential(apiKey, env);
    if ("key" in credential) return { headers: { "api-key": credential.key } };
    const tokens = tokensOf(credential, options);
    return {
      headers: {},
      authorize: async (_, signal) => ({ authorization: `Bearer ${await tokens.get(signal)}` }),
      failureOf: tokens.failureOf,
      close: () => tokens.close(),
    };
  } catch (error) {
    if (env !== undefined || !(error instanceof ConfigError)) throw error;
    const failure = new UpstreamFailure("misconfigured", error.message);
    return { headers: {}, authorize: () => Promise.reject(failure) };
  }
}

const withVersion = (path: string, version: string) => `${path}?api-version=${version}`;

/** Paths of dated versions name the deployment, except that of responses, where the body does. */
function atDeployment(client: ProviderClient, model: string, version: string): ProviderClient {
  const at = (request: ProviderRequest): ProviderRequest => {
    const { path } = request;
    const own = path === "/responses" ? path : `/deployments/${encodeURIComponent(model)}${path}`;
    return { ...request, path: withVersion(own, version) };
  };
  return {
    ...client,
    send: (request, call) => client.send(at(request), call),
    sendForJson: (request, ...more) => client.sendForJson(at(request), ...more),
  };
}
