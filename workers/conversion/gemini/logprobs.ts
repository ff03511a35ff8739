import { given, type JsonObject, list, number, object, text } from "#formats";

/** Chat's `logprobs` of a choice or a chunk as a candidate has them. */
export function geminiLogprobs(logprobs: unknown): JsonObject {
  const tokens = list(object(logprobs)["content"]);
  if (tokens.length === 0) return {};
  const candidate = (token: JsonObject): JsonObject =>
    given({ token: text(token["token"]), logProbability: number(token["logprob"]) });
  return {
    logprobsResult: {
      chosenCandidates: tokens.map(candidate),
      topCandidates: tokens.map((token) => ({ candidates: list(token["top_logprobs"]).map(candidate) })),
    },
  };
}

/** A candidate's `logprobsResult` as chat has it. */
export function chatLogprobs(result: unknown): { logprobs?: JsonObject } {
  const { chosenCandidates, topCandidates } = object(result);
  const chosen = list(chosenCandidates);
  if (chosen.length === 0) return {};
  const tops = list(topCandidates);
  const token = (candidate: JsonObject): JsonObject => ({
    token: text(candidate["token"]),
    logprob: number(candidate["logProbability"]) ?? 0,
    bytes: null,
  });
  const content = chosen.map((candidate, i) => ({
    ...token(candidate),
    top_logprobs: list(tops[i]?.["candidates"]).map(token),
  }));
  return { logprobs: { content, refusal: null } };
}
