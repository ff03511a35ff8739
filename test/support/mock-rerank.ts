import { type MockProvider, type MockRequest, startMockProvider, type Usual } from "./mock-provider.ts";

/**
 * Mocks of Cohere (https://docs.cohere.com/reference/rerank) and Jina (https://api.jina.ai/redoc): the same request,
 * but other errors, fields and usage. The first document is the least relevant; results come in that order, unlike
 * those of any real server.
 */
export type MockRerank = MockProvider;

const resultsOf = ({ documents, top_n }: MockRequest["body"]) =>
  (documents as readonly string[])
    .map((text, index) => ({ text, index, relevance_score: (index + 1) / 1024 }))
    .slice(-Number(top_n ?? 0));

const isAuthorized = ({ headers }: MockRequest) => headers.authorization?.startsWith("Bearer ");
const areTexts = (documents: unknown) =>
  Array.isArray(documents) && documents.length > 0 && documents.every((each) => typeof each === "string");

const cohereFields = ["model", "query", "documents", "top_n", "max_tokens_per_doc", "return_documents", "priority"];

const cohere = (request: MockRequest): Usual => {
  const { method, path, body } = request;
  const refuse = (status: number, message: string): Usual => ({ status, body: { id: "b1f1", message } });
  if (!isAuthorized(request)) return refuse(401, "no api key supplied");
  if (method !== "POST" || path !== "/v2/rerank") return refuse(404, `no Route matched with path ${path}`);
  if (!areTexts(body.documents)) return refuse(400, "invalid request: documents must be a list of strings");
  const extra = Object.keys(body).find((field) => !cohereFields.includes(field));
  if (extra) return refuse(422, `unknown field: parameter '${extra}' is not a valid field`);
  const results = resultsOf(body).map(({ index, relevance_score }) => ({ index, relevance_score }));
  const meta = { api_version: { version: "2" }, billed_units: { search_units: 1 } };
  return { body: { id: "07734bd2", results, meta } };
};

const jinaFields = ["model", "query", "documents", "top_n", "return_documents"];

const jina = (request: MockRequest): Usual => {
  const { method, path, body } = request;
  if (!isAuthorized(request)) return { status: 401, body: { detail: "Invalid API key" } };
  if (method !== "POST" || path !== "/v1/rerank") return { status: 404, body: { detail: "Not Found" } };
  const extra = Object.keys(body).find((field) => !jinaFields.includes(field));
  if (extra || !areTexts(body.documents)) {
    const loc = ["body", extra ?? "documents"];
    return { status: 422, body: { detail: [{ type: "extra_forbidden", loc, msg: "Extra inputs are not permitted" }] } };
  }
  const usage = { total_tokens: 7 * (body.documents as string[]).length };
  const results = resultsOf(body).map(({ text, ...result }) => ({
    ...result,
    ...(body.return_documents !== false && { document: { text } }),
  }));
  return { body: { model: body.model, object: "list", usage, results } };
};

const frame = () => "";
export const startMockCohere = (): Promise<MockRerank> => startMockProvider({ path: "/v2", usual: cohere, frame });
export const startMockJina = (): Promise<MockRerank> => startMockProvider({ path: "/v1", usual: jina, frame });
