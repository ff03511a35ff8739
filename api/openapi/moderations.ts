import { z } from "zod";
import { moderationRequest } from "#formats";
import { routedHeaders } from "../http/openapi/headers.ts";
import { type Group, operation, paidErrors } from "../http/openapi/operation.ts";

const moderationResponse = z
  .object({
    id: z.string(),
    model: z.string(),
    results: z
      .array(
        z.object({
          flagged: z.boolean(),
          categories: z.record(z.string(), z.boolean().nullable()),
          category_scores: z.record(z.string(), z.number().nullable()),
          category_applied_input_types: z.record(z.string(), z.array(z.string())).optional(),
        }),
      )
      .describe("One for each text, or one for the parts of an input"),
  })
  .meta({ id: "ModerationResponse" });

export const moderations: Group = {
  name: "Moderations",
  description: "Whether texts and images are harmful, in OpenAI's format; free",
  operations: {
    "POST /v1/moderations": operation("createModeration", "Whether texts or images are harmful, by category; free", {
      errors: paidErrors,
      isCall: true,
      body: moderationRequest,
      examples: {
        text: { summary: "A text", value: { model: "local/moderation", input: "Have a nice day." } },
        texts: { summary: "Two texts", value: { model: "local/moderation", input: ["Hello.", "I will kill you."] } },
      },
      ok: ["The moderations", moderationResponse, routedHeaders],
    }),
  },
};
