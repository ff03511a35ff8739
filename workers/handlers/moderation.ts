import { moderationOf } from "#formats";
import { completeModeration } from "../conversion/index.ts";
import { jsonCall } from "./json-call.ts";

/** A moderation, which is free. Nothing but the input goes to the upstream. */
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
