import { z } from "zod";
import type { Catalog, Model } from "#catalog";
import { modelNotFound } from "#errors";
import { isListed } from "../../admission/model.ts";
import type { ModelDeps, ModelList } from "./model-list.ts";

const price = z.object({
  unit: z.string(),
  list_usd: z.string().describe("USD per unit"),
  elite_usd: z.string().describe("USD per unit, for Elite accounts"),
});

/** docs/api/inference.md, "Model". */
export const modelObject = z
  .object({
    id: z.string().describe("provider/model"),
    object: z.literal("model"),
    created: z.int().describe("unix seconds"),
    owned_by: z.string(),
    name: z.string(),
    type: z.enum(["text", "image", "video", "audio", "embeddings", "other"]),
    endpoint: z.string(),
    context_length: z.int(),
    max_output_tokens: z.int().optional(),
    features: z.array(z.string()),
    x_elite_discount_bps: z.int(),
    x_pricing: z.record(z.string(), price),
    x_input_schema: z
      .record(z.string(), z.unknown())
      .optional()
      .describe("JSON Schema of the parameters, for models of images and media"),
  })
  .meta({ id: "Model" });

export const modelList = z.object({ object: z.literal("list"), data: z.array(modelObject) }).meta({ id: "ModelList" });

const render = (catalog: Catalog, model: Model): z.infer<typeof modelObject> => ({
  id: model.id,
  object: "model",
  created: model.created,
  owned_by: model.ownedBy,
  name: model.name,
  type: model.type,
  endpoint: model.endpoint,
  context_length: model.contextLength,
  ...(model.maxOutputTokens > 0 && { max_output_tokens: model.maxOutputTokens }),
  features: [...model.features],
  x_elite_discount_bps: model.eliteDiscountBps,
  x_pricing: { ...catalog.pricing(model) },
  ...(model.inputSchema && { x_input_schema: model.inputSchema }),
});

export const chatModels = ({ catalog, registry }: ModelDeps): ModelList => ({
  list() {
    const listed = catalog.list().filter((model) => isListed(registry, model));
    return { object: "list", data: listed.map((model) => render(catalog, model)) } satisfies z.infer<typeof modelList>;
  },
  get(id) {
    const model = catalog.find(id);
    if (!model || !isListed(registry, model)) throw modelNotFound(id);
    return render(catalog, model);
  },
});
