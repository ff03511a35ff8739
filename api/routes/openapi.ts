import { createDocument } from "zod-openapi";
import { formatSchemas } from "../http/openapi/formats/index.ts";
import { type Group, pathsOf } from "../http/openapi/operation.ts";
import { accountGroups } from "./account/index.ts";
import { adminGroups } from "./admin/index.ts";
import { batchFileGroup } from "./batch-files.ts";
import { messageBatchGroup } from "./message-batches.ts";
import { modelGroup } from "./models.ts";
import { paidGroups } from "./paid.ts";
import { uploadGroup } from "./uploads.ts";
import { eventWebhooks } from "./webhook-events.ts";

const groups: readonly Group[] = [
  ...paidGroups,
  messageBatchGroup,
  uploadGroup,
  batchFileGroup,
  modelGroup,
  ...accountGroups,
];

const description = `Text, image, video, audio and embedding models behind one address and one key, paid from a prepaid balance. If the service accepts x402, images and media can also be called without a key and paid per call.

**What determines the shape of a response**

- The path: chat-completions, Messages, Responses and Gemini each have their own requests, responses, events and errors.
- \`stream: true\` in the body, or Gemini's \`streamGenerateContent\`: server-sent events. The schema of \`text/event-stream\` describes the data of one event. Status and headers are sent with the first event, so an earlier failure has its own status and a JSON body.
- \`anthropic-version\`, or \`x-goog-api-key\` or \`x-goog-api-client\`, on \`GET /v1/models\`: the list in that provider's format.
- \`Idempotency-Key\`: the stored response of the first request, with \`idempotent-replayed\`.
- \`Accept\` has no effect, except on \`GET /v1/invoices\`.

**What is stored of prompts and answers**

Lists, usage and logs have none. They are stored only where somebody asks for them again:

- Responses: for 24 hours, unless the request has \`store: false\`.
- \`Idempotency-Key\` and x402: the answer, for 24 hours.
- Jobs and responses in the background: the request until the end, the result for 24 hours after it.
- Batches: their files and results, for up to 30 days.
- The response cache, for a call or a key that uses it: the answer, for up to 24 hours.
- Webhooks with \`include_result\`: the result, for 7 days.
- Uploads and generated files: for 24 hours.

\`DELETE\` of a response, job, file or batch, and of the cache, deletes them earlier. The operator may have prompts and answers of text calls recorded in traces (\`OTEL_CAPTURE_CONTENT\`, off by default).

**Errors of every route**, in addition to its own: 405 \`method_not_allowed\` with \`Allow\`, 417 \`expectation_failed\`, 431 \`headers_too_large\`.`;

/** Most client generators do not read OpenAPI 3.2 yet, which could describe streams by item. */
const documentOf = (
  info: { readonly title: string; readonly description: string },
  serverUrl: string,
  shown: readonly Group[],
  components: NonNullable<Parameters<typeof createDocument>[0]["components"]>,
  webhooks?: NonNullable<Parameters<typeof createDocument>[0]["webhooks"]>,
) =>
  createDocument({
    openapi: "3.1.0",
    info: { version: "1.0.0", ...info },
    servers: [{ url: serverUrl }],
    tags: shown.map(({ name, description: text }) => ({ name, description: text })),
    security: [{ bearer: [] }],
    components,
    paths: pathsOf(shown),
    ...(webhooks && { webhooks }),
  });

export const openApiDocument = (serverUrl: string) =>
  documentOf(
    { title: "Inference service", description },
    serverUrl,
    groups,
    {
      schemas: formatSchemas,
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key of the account, `live_...`" },
        anthropicKey: {
          type: "apiKey",
          in: "header",
          name: "x-api-key",
          description: "The same key, as Anthropic's clients send it",
        },
        geminiKey: {
          type: "apiKey",
          in: "header",
          name: "x-goog-api-key",
          description: "The same key, as Google's clients send it",
        },
        geminiQueryKey: {
          type: "apiKey",
          in: "query",
          name: "key",
          description: "The same key in the query string, which proxies may log; prefer a header",
        },
      },
    },
    eventWebhooks,
  );

const adminDescription = `For operators: accounts, keys, balances, and the state of the service.

Amounts are exact decimal strings in USD, times are unix seconds. An unknown field gets a 400 that names it. Lists are newest first unless stated otherwise. Every change is recorded in the audit log under the name of the operator's token.`;

/** The admin interface, whose paths are under `serverUrl`. */
export const adminDocument = (serverUrl: string) =>
  documentOf({ title: "Inference service: admin interface", description: adminDescription }, serverUrl, adminGroups, {
    securitySchemes: {
      bearer: { type: "http", scheme: "bearer", description: "`ADMIN_TOKEN`, or one of `ADMIN_TOKENS`" },
    },
  });
