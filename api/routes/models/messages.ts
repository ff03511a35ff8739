import { z } from "zod";
import type { Model } from "#catalog";
import { invalidValue, modelNotFound } from "#errors";
import { findModel, isListed, isServedIn } from "../../admission/model.ts";
import { parse } from "../../http/input.ts";
import { type ModelDeps, type ModelList, newestFirst, wholeNumber } from "./model-list.ts";

const stage = z.enum(["active", "deprecated", "retired"]);
const stages = z.union([stage, z.array(stage).max(3)]).optional();

/** Unknown parameters are ignored. */
const listQuery = z.object({
  limit: wholeNumber.pipe(z.int().min(1).max(1000)).default(20),
  after_id: z.string().optional(),
  before_id: z.string().optional(),
  lifecycle: stages,
  /** How the official client sends a list. */
  "lifecycle[]": stages,
});

/** Anthropic's own models are listed under Anthropic's names for them. */
const nativeId = ({ id, ownedBy, aliases: [alias = id] }: Model): string => (ownedBy === "anthropic" ? alias : id);

/** The fields of `ModelInfo` in the official client; null is what the catalog does not know. */
const render = (model: Model) => ({
  type: "model",
  id: nativeId(model),
  display_name: model.name,
  created_at: new Date(model.created * 1000).toISOString().replace(".000Z", "Z"),
  max_input_tokens: model.contextLength,
  max_tokens: model.maxOutputTokens,
  // Its members can only say `supported: false`, which would be wrong of requests that pass through.
  capabilities: null,
  lifecycle: "active",
  deprecated_at: null,
  retires_at: null,
  line: null,
});

/** `GET /v1/models` of Anthropic's API: the models that the Messages format serves. */
export function messagesModels({ catalog, registry }: ModelDeps): ModelList {
  const models = newestFirst(catalog.list().filter((model) => isServedIn("messages", model)));
  const find = (id: string) => models.find((model) => model === findModel(catalog, "messages", id));

  /** Accepts a model that is no longer listed, so that a client in the middle of the list can continue. */
  function placeOf(param: "after_id" | "before_id", id: string): number {
    const model = find(id);
    if (!model) throw invalidValue(param, `${param}: there is no model '${id}'.`);
    return models.indexOf(model);
  }

  return {
    list(query) {
      const { limit, after_id, before_id, ...filters } = parse(listQuery, query);
      if (after_id !== undefined && before_id !== undefined)
        throw invalidValue("before_id", "before_id: cannot be combined with after_id.");
      const wanted = [filters.lifecycle ?? [], filters["lifecycle[]"] ?? []].flat();
      const start = after_id === undefined ? 0 : placeOf("after_id", after_id) + 1;
      const end = before_id === undefined ? undefined : placeOf("before_id", before_id);
      const isWanted = wanted.length === 0 || wanted.includes("active");
      const available = isWanted ? models.slice(start, end).filter((model) => isListed(registry, model)) : [];
      const page = before_id === undefined ? available.slice(0, limit) : available.slice(-limit);
      const [first, last] = [page.at(0), page.at(-1)];
      return {
        data: page.map(render),
        has_more: page.length < available.length,
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
