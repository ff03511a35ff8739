/**
 * Google's Vertex AI (https://docs.cloud.google.com/vertex-ai/generative-ai/docs), in the formats of its models' vendors:
 * Gemini with token counts, embeddings and images; Claude with token counts; OpenAI's chat for the models of partners. A
 * location has its own host; an address of the operator's own stays. The credential is the JSON key of a service account, the
 * word `identity`, or an API key, which serves Gemini in the location `global` only. Callers' links reach Gemini, never
 * Claude; uploads are sent as bytes.
 *
 * Throws ConfigError for an operator's credential that cannot be used. Calls with such a key of a customer fail as
 * misconfigured.
 */
import type { Format } from "#formats";
import { isCount, isObject, type JsonObject, list } from "#json";
import type { Clock } from "#platform/clock";
import { ConfigError } from "#platform/config-error";
import type { Environment } from "#platform/process/secret-files";
import { anthropicThrough } from "../anthropic/index.ts";
import type { EmbeddingMethod } from "../gemini/embeddings.ts";
import { geminiThrough } from "../gemini/index.ts";
import { connectProvider, type ProviderRequest } from "../http/provider-client.ts";
import { createTokens } from "../http/tokens.ts";
import { openaiThrough } from "../openai/index.ts";
import { type Provider, type UpstreamEndpoint, UpstreamFailure } from "../provider.ts";
import { type Access, accessOf } from "./access.ts";
import { InvalidAccess } from "./credentials.ts";
import { tokenSource } from "./grants.ts";
import { vertexRequest } from "./requests.ts";

interface Deps {
  readonly clock: Clock;
  /** The operator's environment, which may name another token endpoint, also for keys of customers. */
  readonly hosts?: Environment | undefined;
}

export function createVertex(target: UpstreamEndpoint, { clock, hosts = target.env }: Deps): Provider {
  const tokenUrl = hosts?.["GOOGLE_OAUTH_TOKEN_URL"] || undefined;
  if (tokenUrl !== undefined && !/^https?:$/.test(URL.parse(tokenUrl)?.protocol ?? ""))
    throw new ConfigError("GOOGLE_OAUTH_TOKEN_URL: not an http or https address");
  try {
    return vertexWith(accessOf(target), target, clock, tokenUrl);
  } catch (error) {
    if (!(error instanceof InvalidAccess)) throw error;
    const message = `Vertex AI: ${error.message}`;
    if (target.env !== undefined) throw new ConfigError(message);
    return unusable(target, message);
  }
}

function vertexWith(
  { baseUrl, credential }: Access,
  target: UpstreamEndpoint,
  clock: Clock,
  tokenUrl?: string,
): Provider {
  const isKey = credential.type === "api_key";
  const isGlobal = (target.parts.region ?? "global") === "global";
  const source = isKey ? undefined : tokenSource(credential, clock, tokenUrl);
  const tokens = source && createTokens((signal) => source.fetch(signal), clock);
  const client = connectProvider(
    {
      baseUrl,
      concurrency: target.concurrency,
      headers: isKey ? { "x-goog-api-key": credential.key } : {},
      ...(tokens && {
        authorize: async (_, signal) => ({ authorization: `Bearer ${await tokens.get(signal)}` }),
        failureOf: tokens.failureOf,
      }),
      adapt(request: ProviderRequest) {
        const adapted = vertexRequest(request, target.env !== undefined);
        if (!isKey || (isGlobal && adapted.path.startsWith("/publishers/google/"))) return adapted;
        throw new UpstreamFailure(
          "misconfigured",
          "an API key of Vertex AI serves Gemini in the location 'global' only",
        );
      },
    },
    clock,
  );
  const gemini = geminiThrough(client, predict);
  const byFormat: Partial<Record<Format, Pick<Provider, "answer" | "stream" | "count">>> = {
    gemini,
    messages: anthropicThrough(client),
    chat: openaiThrough(client, target),
  };
  const speaker = (format: Format) => {
    const found = byFormat[format];
    if (found) return found;
    throw new UpstreamFailure("misconfigured", `Vertex AI does not speak ${format}`);
  };
  return {
    speaks: target.formats,
    answer: async (call) => speaker(call.format).answer(call),
    stream: (call) => speaker(call.format).stream(call),
    async count(call) {
      const { count } = speaker(call.format);
      if (count) return count(call);
      throw new UpstreamFailure("misconfigured", "Vertex AI counts no tokens for models of partners");
    },
    async check(call) {
      const request = { format: "gemini", model: probedModel, headers: {}, body: probedBody } as const;
      const probe = { ...call, ...request, reserveMemory: () => {} };
      await gemini.count?.(probe).catch((error: unknown) => {
        // The project is known, so the credential is valid: another location or time has no such model.
        if (!(error instanceof UpstreamFailure && error.status === 404)) throw error;
      });
    },
    embed: (call) => gemini.embed(call),
    generate: (call) => gemini.generate(call),
    takesLinks: false,
    async close() {
      await Promise.all([client.close(), source?.close()]);
    },
  };
}

/** Counting tokens is free. */
const probedModel = "gemini-3.8-flash";
const probedBody: JsonObject = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] };

/** https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api */
const predict: EmbeddingMethod = {
  // The limit of Gemini's embedding models.
  batchSize: 1,
  parallel: 8,
  name: "predict",
  request: (texts, outputDimensionality) => ({
    instances: texts.map((content) => ({ content })),
    parameters: { outputDimensionality },
  }),
  read({ predictions }) {
    const embeddings = list(predictions).map((each) => each["embeddings"]);
    const counts = embeddings.map((each) => {
      const { statistics } = isObject(each) ? each : {};
      return isObject(statistics) ? statistics["token_count"] : undefined;
    });
    return { embeddings, tokens: counts.every(isCount) ? counts.reduce((sum, count) => sum + count, 0) : undefined };
  },
};

/** A customer's key that cannot be used fails at each call, since the worker must go on. */
function unusable({ formats }: UpstreamEndpoint, message: string): Provider {
  const fail = () => Promise.reject(new UpstreamFailure("misconfigured", message));
  return {
    speaks: formats,
    answer: fail,
    stream: () => ({ [Symbol.asyncIterator]: () => ({ next: fail }) }),
    count: fail,
    check: fail,
    embed: fail,
    generate: fail,
    takesLinks: false,
    close: async () => {},
  };
}
