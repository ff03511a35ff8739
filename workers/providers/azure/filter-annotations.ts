import { isObject, type JsonObject, omitNullish, pick } from "#json";

const nothing: JsonObject = {};

/**
 * Converts the chunks of one stream to those that OpenAI sends. Azure's content filter annotates the prompt in a chunk without
 * choices, and with asynchronous filtering the text in chunks without `delta`, both with an empty id and the time 0
 * (https://learn.microsoft.com/azure/foundry/openai/concepts/content-streaming). Clients of OpenAI fail at a chunk without
 * choices, so its annotations are added to the next one, and it does not count as the first token.
 */
export function annotationJoiner() {
  let held = nothing;

  return (event: JsonObject): readonly JsonObject[] => {
    const { id, created, model, object, choices, ...fields } = event;
    // A repeated chunk has no fields of its own, and neither id nor annotations that differ from the first one's.
    if (!Object.hasOwn(event, "choices") || !Array.isArray(choices)) return [event];
    if (choices.length === 0 && event["usage"] == null) {
      held = { ...held, ...pick(event, ["prompt_filter_results", "prompt_annotations"]) };
      return [];
    }
    const hasDelta = ({ delta }: JsonObject) => isObject(delta);
    if (id !== "" && choices.every(hasDelta) && held === nothing) return [event];
    const chunk = {
      ...omitNullish({ id: id || null, object: object || null, created: created || null, model: model || null }),
      ...fields,
      ...held,
      choices: choices.map((choice: JsonObject) => (hasDelta(choice) ? choice : { ...choice, delta: {} })),
    };
    held = nothing;
    return [chunk];
  };
}
