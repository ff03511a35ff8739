import { z } from "zod";
import { rerankRequest } from "#formats";
import { storedRoutedHeaders } from "../http/openapi/headers.ts";
import { type Group, operation, storing } from "../http/openapi/operation.ts";

const rerankResponse = z
  .object({
    id: z.string(),
    object: z.literal("list"),
    model: z.string(),
    results: z
      .array(
        z.object({
          index: z.int().describe("Of the document in the request"),
          relevance_score: z.number(),
          document: z.looseObject({}).optional().describe("With `return_documents`: the text, or the object as it was"),
        }),
      )
      .describe("The most relevant first"),
    meta: z.object({
      api_version: z.object({ version: z.string() }),
      billed_units: z.object({ search_units: z.int().optional(), input_tokens: z.int().optional() }),
    }),
    usage: z.object({
      search_units: z.int().optional(),
      prompt_tokens: z.int().optional(),
      total_tokens: z.int().optional(),
    }),
  })
  .meta({ id: "RerankResponse" });

const details = {
  ...storing,
  body: rerankRequest,
  examples: {
    texts: {
      summary: "The best of three texts",
      value: {
        model: "local/rerank",
        query: "How are files deleted?",
        documents: ["Prices are in USD.", "Files are deleted after a day.", "Keys begin with live_."],
        top_n: 1,
        return_documents: true,
      },
    },
  },
  ok: ["The results", rerankResponse, storedRoutedHeaders],
} satisfies Parameters<typeof operation>[2];

export const rerank: Group = {
  name: "Rerank",
  description: "Documents by their relevance to a query, in Cohere's and Jina's shape",
  operations: {
    "POST /v1/rerank": operation("rerank", "Documents by their relevance; priced per search or per token", details),
    "POST /v2/rerank": operation("rerankV2", "The same, at the path of Cohere's clients", details),
  },
};
