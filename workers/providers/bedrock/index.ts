/**
 * Amazon Bedrock (https://docs.aws.amazon.com/bedrock/latest/userguide/apis.html). At `bedrock-runtime`, Claude answers
 * Messages through InvokeModel, OpenAI's models chat and responses at OpenAI's routes, and all other models chat through
 * Converse; at `bedrock-mantle` every model answers at the routes of its vendor's API. `{geo}` in a model's name stands for
 * the prefix of the region's inference profiles. A credential is an API key of Bedrock, a JSON object with
 * `access_key_id`, `secret_access_key` and perhaps `session_token`, or the word `identity`. Answers are untrusted: an answer
 * has at most 64 MB, a frame of a stream 8 MB. Callers see the provider's message only if their request is at fault.
 */
import { ServiceError } from "#errors";
import { isCount, type JsonObject, number, object } from "#json";
import type { Clock } from "#platform/clock";
import { anthropicThrough } from "../anthropic/index.ts";
import { connectProvider, type ProviderClient } from "../http/provider-client.ts";
import { readStream, type StreamRules } from "../http/read-stream.ts";
import { writeRequest } from "../http/untrusted-json.ts";
import { openaiThrough } from "../openai/index.ts";
import { generatesOnly, type Provider, type TextCall, type UpstreamEndpoint, UpstreamFailure } from "../provider.ts";
import {
  foundationModel,
  invokeBody,
  isOpenaiModel,
  mantleRequest,
  modelAt,
  modelPath,
  runtimeRequest,
} from "./addresses.ts";
import { chatAnswer, chunkReader, isMalformed, malformedAnswer } from "./converse-answer.ts";
import { converseRequest } from "./converse-request.ts";
import { authorization } from "./credentials.ts";
import { converseFraming, invokeFraming } from "./event-stream.ts";
import { bedrockFailure } from "./failures.ts";

type TextProvider = Pick<Provider, "answer" | "stream">;

export function createBedrock(target: UpstreamEndpoint, { clock }: { clock: Clock }): Provider {
  const { baseUrl, concurrency, formats } = target;
  const { region } = target.parts;
  if (region === undefined) throw new TypeError("an upstream of AWS without a region");
  const isMantle = baseUrl.includes("bedrock-mantle");
  const client = connectProvider(
    {
      baseUrl,
      concurrency,
      headers: {},
      authorize: authorization(target, { region, service: isMantle ? "bedrock-mantle" : "bedrock", clock }),
      adapt: isMantle ? mantleRequest(region) : runtimeRequest(region),
      failureOf: bedrockFailure,
    },
    clock,
  );
  const messages = anthropicThrough(client, isMantle ? readStream : readInvokeStream);
  const chat = openaiThrough(client, { formats, storesAnswers: false });
  // OpenAI's responses are stored unless a request forbids it.
  const responses = openaiThrough(client, { formats, storesAnswers: true });
  const converse = converseThrough(client, region);

  function serving({ format, model }: TextCall): TextProvider {
    if (format === "messages") return messages;
    if (format === "responses") return responses;
    if (format === "chat") return isMantle || isOpenaiModel(model) ? chat : converse;
    throw new UpstreamFailure("misconfigured", `this kind of upstream does not speak ${format}`);
  }

  return {
    speaks: formats,
    answer: async (call) => serving(call).answer(call),
    stream: (call) => serving(call).stream(call),
    async count(call) {
      if (call.format !== "messages")
        throw new UpstreamFailure("misconfigured", "only requests of Messages are counted");
      return isMantle ? (messages.count?.(call) ?? 0) : countTokens(client, call);
    },
    check: (call) => (isMantle ? checkMantle(client, call) : checkRuntime(client, call)),
    embed: generatesOnly("text"),
    generate: generatesOnly("text"),
    takesLinks: false,
    close: () => client.close(),
  };
}

const invocationMetrics = "amazon-bedrock-invocationMetrics";

/** The events of Anthropic's own stream; the last has measurements of AWS in addition. */
const readInvokeStream: typeof readStream = (client, request, rules, call) =>
  readStream(
    client,
    request,
    {
      ...rules,
      convert(given) {
        const { [invocationMetrics]: _, ...event } = given;
        return [event];
      },
    },
    call,
    invokeFraming(client.clock),
  );

/** Counts are free. The API knows models by their own names only, not by those of inference profiles. */
async function countTokens(client: ProviderClient, { body, model, headers, ...call }: TextCall): Promise<number> {
  // A body for InvokeModel needs a cap above the budget for thinking. It does not count.
  const max_tokens = (number(object(body.thinking).budget_tokens) ?? 0) + 1;
  const counted = writeRequest(invokeBody({ max_tokens, ...body }, headers["anthropic-beta"]));
  const { inputTokens } = await client.sendForJson(
    {
      path: modelPath(foundationModel(model), "count-tokens"),
      json: { input: { invokeModel: { body: Buffer.from(counted).toString("base64") } } },
    },
    call,
  );
  if (isCount(inputTokens)) return inputTokens;
  throw new UpstreamFailure("unavailable", "a count that is not a whole number");
}

type Check = Parameters<NonNullable<Provider["check"]>>[0];

/** The list of models. */
async function checkMantle(client: ProviderClient, call: Check): Promise<void> {
  await client.sendForJson({ path: "/v1/models" }, call);
}

/**
 * A conversation without messages, which is refused after the credential and its permission to invoke a model were accepted.
 * The endpoint has no list that is free and needs no further permission.
 */
async function checkRuntime(client: ProviderClient, call: Check): Promise<void> {
  try {
    await client.sendForJson({ path: modelPath(checkedModel, "converse"), json: { messages: [] } }, call);
  } catch (error) {
    const isAccepted = error instanceof UpstreamFailure && (error.status === 400 || error.status === 404);
    if (!isAccepted) throw error;
  }
}

/** Available in all regions that have models of Anthropic. */
const checkedModel = "anthropic.claude-haiku-4-5-20251001-v1:0";

const converseRules: StreamRules = {
  failure: ({ messageStop }) =>
    isMalformed(object(messageStop).stopReason) ? { message: malformedAnswer, code: 500 } : undefined,
  ends: (event) => "messageStop" in event,
};

function converseThrough(client: ProviderClient, region: string): TextProvider {
  /** What Converse cannot express is a limit of this host: another server of the model may take it. */
  const requestOf = (body: JsonObject): JsonObject => {
    try {
      return converseRequest(body);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      throw new UpstreamFailure("refused", error.message, { param: error.param, isHostLimit: true });
    }
  };
  return {
    async answer(call) {
      const path = modelPath(modelAt(call.model, region), "converse");
      return chatAnswer(await client.sendForJson({ path, json: requestOf(call.body) }, call));
    },
    stream(call) {
      const path = modelPath(modelAt(call.model, region), "converse-stream");
      const rules = { ...converseRules, convert: chunkReader() };
      const framing = converseFraming(client.clock);
      return readStream(client, { path, json: requestOf(call.body) }, rules, call, framing);
    },
  };
}
