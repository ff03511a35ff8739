import { randomUUID } from "node:crypto";
import { anthropicAnswer } from "./mock-anthropic.ts";
import { createMockEntra } from "./mock-entra.ts";
import { type Answer, openaiAnswer } from "./mock-openai.ts";
import {
  type MockOptions,
  type MockProvider,
  type MockRequest,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";

/**
 * A Foundry resource and the token server for it (mock-entra.ts), in the shapes of
 * https://learn.microsoft.com/azure/foundry/openai/latest and .../openai/reference: OpenAI's v1 API at `/openai/v1`, dated
 * versions at `/openai/deployments/{deployment}`, Claude at `/anthropic/v1`. Requests need the resource's key or a token for
 * the audience of the API, the name of a deployment, and a version where one is due. Answers have the annotations of the
 * content filter. A prompt with the word `forbidden` is blocked.
 */
export type MockAzure = MockProvider<Answer> & {
  /** The tokens that the token server has issued. */
  readonly issuedTokens: readonly string[];
  /** Makes all tokens invalid that were issued until now. */
  revokeTokens(): void;
};

export const mockAzureKey = "4f1e2d3c4b5a69788796a5b4c3d2e1f0AzureKeyOfResource";

interface Deployment {
  readonly model: string;
  /** The endpoints below the API's path that serve its model. */
  readonly serves: RegExp;
  /** The filter runs beside the stream and annotates in chunks of its own. */
  readonly asynchronousFilter?: true;
}

const text = /^\/(chat\/completions|responses)$/;
const deployments: Readonly<Record<string, Deployment>> = {
  "gpt-main": { model: "gpt-5.5-2026-04-24", serves: text },
  "gpt-async": { model: "gpt-5.5-2026-04-24", serves: text, asynchronousFilter: true },
  vectors: { model: "text-embedding-3-large", serves: /^\/embeddings$/ },
  pictures: { model: "gpt-image-2", serves: /^\/images\/(generations|edits)$/ },
  voice: { model: "tts", serves: /^\/audio\/speech$/ },
  ears: { model: "whisper", serves: /^\/audio\/(transcriptions|translations)$/ },
  "claude-main": { model: "claude-opus-5-5", serves: /^\/messages(\/count_tokens)?$/ },
};

const dated: readonly string[] = ["2024-10-21", "2025-04-01-preview"];
/** Fields that a dated version does not have, although OpenAI does. */
const laterFields = ["store", "verbosity", "prompt_cache_retention", "safety_identifier"];

export const mockAzureError = (status: number, code: string | null, message: string, more: object = {}): Answer => ({
  status,
  body: { error: { code, message, ...more } },
});

const notFound = mockAzureError(404, "404", "Resource not found");

/** https://learn.microsoft.com/azure/foundry/openai/concepts/content-filter */
const safe = { filtered: false, severity: "safe" };
const categories = { hate: safe, self_harm: safe, sexual: safe, violence: safe };
export const mockPromptResults = [
  { prompt_index: 0, content_filter_results: { ...categories, jailbreak: { filtered: false, detected: false } } },
];

export const mockBlocked = (code = "content_filter"): Answer =>
  mockAzureError(
    400,
    code,
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry. To learn more about our content filtering policies please read our documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
    {
      param: "prompt",
      type: null,
      status: 400,
      innererror: {
        code: "ResponsibleAIPolicyViolation",
        content_filter_result: { ...categories, violence: { filtered: true, severity: "high" } },
      },
    },
  );

type Fields = Readonly<Record<string, unknown>>;

/** The API, the path below it, and the deployment that the path names. */
interface Place {
  readonly api: "v1" | "dated" | "claude";
  readonly path: string;
  readonly deployment: string | undefined;
}

function placeOf({ path: whole }: MockRequest): Place | Usual {
  const { pathname, searchParams } = new URL(whole, "http://resource");
  const version = searchParams.get("api-version");
  const [, claude] = /^\/anthropic\/v1(\/.+)$/.exec(pathname) ?? [];
  if (claude) return { api: "claude", path: claude, deployment: undefined };
  const [, current] = /^\/openai\/v1(\/.+)$/.exec(pathname) ?? [];
  if (current)
    return version === null || version === "v1" || version === "preview"
      ? { api: "v1", path: current, deployment: undefined }
      : mockAzureError(400, "BadRequest", "API version not supported");
  const [, deployment, below] = /^\/openai(?:\/deployments\/([^/]+))?(\/.+)$/.exec(pathname) ?? [];
  if (below === undefined || version === null) return notFound;
  if (!dated.includes(version)) return mockAzureError(400, "BadRequest", "API version not supported");
  if (below === "/responses" && version < "2025-03-01")
    return mockAzureError(
      400,
      "BadRequest",
      "Azure OpenAI Responses API is enabled only for api-version 2025-03-01-preview and later",
    );
  if ((deployment === undefined) !== ["/responses", "/models"].includes(below)) return notFound;
  return { api: "dated", path: below, deployment: deployment && decodeURIComponent(deployment) };
}

const audienceOf = (api: Place["api"]) =>
  api === "dated" ? "https://cognitiveservices.azure.com" : "https://ai.azure.com";

export async function startMockAzure(options: MockOptions = {}): Promise<MockAzure> {
  const entra = createMockEntra();

  async function unauthorized({ headers }: MockRequest, api: Place["api"]): Promise<Answer | undefined> {
    const { "api-key": key, authorization } = headers;
    const [, token] = /^Bearer (\S+)$/.exec(authorization ?? "") ?? [];
    if (token === undefined)
      return key === mockAzureKey
        ? undefined
        : mockAzureError(
            401,
            "401",
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
          );
    if (key === undefined && (await entra.accepts(token, audienceOf(api)))) return undefined;
    const message = `Unauthorized. Access token is missing, invalid, audience is incorrect (${audienceOf(api)}), or have expired.`;
    return { status: 401, body: { statusCode: 401, message } };
  }

  async function usual(request: MockRequest, scripted: Answer): Promise<Usual> {
    if (/\/oauth2\//.test(request.path)) return entra.answer(request);
    const place = placeOf(request);
    if (!("api" in place)) return place;
    const refused = await unauthorized(request, place.api);
    if (refused) return refused;
    if (place.path === "/models" && place.api !== "claude" && request.method === "GET")
      return { body: { object: "list", data: [{ id: "gpt-5.5", object: "model", status: "succeeded" }] } };
    return answerOf(request, place, scripted);
  }

  const mock = await startMockProvider<Answer>(
    {
      usual,
      frame: (event) => {
        const line = "choices" in event ? "" : `event: ${(event as { type: string }).type}\n`;
        return `${line}data: ${JSON.stringify(event)}\n\n`;
      },
      lastFrame: ({ path }) => (path.includes("/chat/completions") ? "data: [DONE]\n\n" : ""),
      headers: {
        "apim-request-id": randomUUID(),
        "x-request-id": randomUUID(),
        "x-ms-region": "Sweden Central",
        "x-ratelimit-remaining-requests": "99",
        "x-ratelimit-remaining-tokens": "99000",
      },
    },
    options,
  );
  return Object.assign(mock, { issuedTokens: entra.issued, revokeTokens: entra.revokeAll });
}

function answerOf(request: MockRequest, { api, path, deployment }: Place, scripted: Answer): Usual {
  const { body, method } = request;
  if (method !== "POST") return notFound;
  const named = deployment ?? String(body["model"]);
  const found = Object.hasOwn(deployments, named) ? deployments[named] : undefined;
  if (!found)
    return mockAzureError(
      404,
      "DeploymentNotFound",
      "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
    );
  if (!found.serves.test(path))
    return mockAzureError(
      400,
      "OperationNotSupported",
      `The ${path.slice(1)} operation does not work with the specified model, ${found.model}. Please choose different model and try again.`,
    );
  const later = api === "dated" ? laterFields.find((field) => field in body) : undefined;
  if (later && path !== "/responses")
    return mockAzureError(400, null, `Unrecognized request argument supplied: ${later}`, {
      type: "invalid_request_error",
      param: null,
    });
  if (/\bforbidden\b/.test(JSON.stringify(body))) return mockBlocked();
  const headers = { ...request.headers, authorization: "Bearer checked", "x-api-key": "checked" };
  const asked = { ...request, path: `/v1${path}`, headers, body: { ...body, model: found.model } };
  if (api === "claude") return anthropicAnswer(asked, scripted);
  return annotated(openaiAnswer(asked, scripted), path, found);
}

function annotated(answer: Usual, path: string, { asynchronousFilter }: Deployment): Usual {
  if (path !== "/chat/completions") return answer;
  const { body, events } = answer;
  if (body && answer.status === undefined)
    return {
      body: {
        ...(body as Fields),
        choices: choicesOf(body).map((choice) => ({ ...choice, content_filter_results: categories })),
        prompt_filter_results: mockPromptResults,
      },
    };
  if (!Array.isArray(events)) return answer;
  const chunks = events as Fields[];
  const empty = { id: "", object: "", created: 0, model: "" };
  const first = { ...empty, choices: [], prompt_filter_results: mockPromptResults };
  if (!asynchronousFilter) return { events: [first, ...chunks.map(withResults)] };
  const note = (from: number, to: number) => ({
    ...empty,
    choices: [
      {
        index: 0,
        finish_reason: null,
        content_filter_results: categories,
        content_filter_offsets: { check_offset: from, start_offset: from, end_offset: to },
      },
    ],
  });
  const [usage] = chunks.filter((chunk) => choicesOf(chunk).length === 0);
  const texts = chunks.filter((chunk) => choicesOf(chunk).length > 0);
  const middle = texts.length >> 1;
  return {
    events: [
      first,
      ...texts.slice(0, middle),
      note(44, 198),
      ...texts.slice(middle),
      ...(usage ? [usage] : []),
      note(198, 571),
    ],
  };
}

const choicesOf = (chunk: unknown) => (chunk as { readonly choices: readonly Fields[] }).choices;

const withResults = (chunk: Fields): Fields => ({
  ...chunk,
  choices: choicesOf(chunk).map((choice) => ({
    ...choice,
    content_filter_results: choice["finish_reason"] ? {} : categories,
  })),
});
