import { z } from "zod";
import { upstreamError } from "#errors";
import { moderationOf } from "#formats";
import { jsonCall } from "./json-call.ts";

const category = z.string().max(64);
const result = z.object({
  flagged: z.boolean(),
  categories: z.record(category, z.boolean().nullable()),
  category_scores: z.record(category, z.number().nullable()),
  category_applied_input_types: z.record(category, z.array(z.string().max(16)).max(8)).optional(),
});
const answer = z.looseObject({ results: z.array(result) });

/** The provider's results. Throws `upstreamError` unless there is one for each input. */
function completeModeration(response: unknown, inputs: number): readonly z.infer<typeof result>[] {
  const parsed = answer.safeParse(response);
  if (parsed.data?.results.length !== inputs)
    throw upstreamError("The upstream's response is not a list of moderations.");
  return parsed.data.results;
}

/** Moderation is free. Only the input goes to the upstream. */
export const moderation = jsonCall("moderate", ({ request, payload: { requestId } }) => {
  const { input, results, others } = moderationOf(request);
  return {
    body: { input },
    ignored: others,
    answer: (response, model) => ({
      text: JSON.stringify({
        id: `modr-${requestId}`,
        model: model.id,
        results: completeModeration(response, results),
      }),
      usage: {},
      estimated: false,
    }),
  };
});
