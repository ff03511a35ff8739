import { z } from "zod";
import type { Model } from "#catalog";
import { invalidValue, modelNotFound } from "#errors";
import { findModel, isListed, isServedIn } from "../../admission/model.ts";
import { parse } from "../../http/input.ts";
import { type ModelDeps, type ModelList, newestFirst, wholeNumber } from "./model-list.ts";

const stage = z.enum(["active", "deprecated", "retired"]);
const stages = z.union([stage, z.array(stage).max(3)]).optional();

/** What else stands there is the provider's to know, and is left alone. */
const listQuery = z.object({
  limit: wholeNumber.pipe(z.int().min(1).max(1000)).default(20),
  after_id: z.string().optional(),
  before_id: z.string().optional(),
  lifecycle: stages,
  /** As the client writes a list. */
  "lifecycle[]": stages,
});

/** The provider's own model goes by the provider's name for it. */
const nativeId = ({ id, ownedBy, aliases: [alias = id] }: Model): string => (ownedBy === "anthropic" ? alias : id);

/** The fields are those of `ModelInfo` in the provider's client; null is what the catalog does not know. */
const render = (model: Model) => ({
  type: "model",
  id: nativeId(model),
  display_name: model.name,
  created_at: new Date(model.created * 1000).toISOString().replace(".000Z", "Z"),
  max_input_tokens: model.contextLength,
  max_tokens: model.maxOutputTokens,
  // The provider's object has no word for "not known" inside: `supported: false` would be wrong of what passes through.
  capabilities: null,
  lifecycle: "active",
  deprecated_at: null,
  retires_at: null,
  line: null,
});

/** The list of `GET /v1/models` as Anthropic's API reference has it: the models that the Messages format takes. */
export function messagesModels({ catalog, registry }: ModelDeps): ModelList {
  const models = newestFirst(catalog.list().filter((model) => isServedIn("messages", model)));
  const find = (id: string) => models.find((model) => model === findModel(catalog, "messages", id));

  /** Also of a model that is not listed any more: a client that is in the middle of the list goes on. */
  function placeOf(param: "after_id" | "before_id", id: string): number {
    const model = find(id);
    if (!model) throw invalidValue(param, `${param}: There is no model '${id}'.`);
    return models.indexOf(model);
  }

  return {
    list(query) {
      const { limit, after_id, before_id, ...filters } = parse(listQuery, query);
      if (after_id !== undefined && before_id !== undefined)
        throw invalidValue("before_id", "before_id: It cannot go with after_id.");
      const wanted = [filters.lifecycle ?? [], filters["lifecycle[]"] ?? []].flat();
      const start = after_id === undefined ? 0 : placeOf("after_id", after_id) + 1;
      const end = before_id === undefined ? undefined : placeOf("before_id", before_id);
      const isWanted = wanted.length === 0 || wanted.includes("active");
      const there = isWanted ? models.slice(start, end).filter((model) => isListed(registry, model)) : [];
      const page = before_id === undefined ? there.slice(0, limit) : there.slice(-limit);
      const [first, last] = [page.at(0), page.at(-1)];
      return {
        data: page.map(render),
        has_more: page.length < there.length,
        first_id: first ? nativeId(first) : null,
        last_id: last ? nativeId(last) : null,
      };
    },
    get(id) {
      const model = find(id);
      if (!model || !isListed(registry, model)) throw modelNotFound(id);
      return render(model);
    },
  };
}
