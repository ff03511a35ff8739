import { z } from "zod";
import { type Catalog, type Model, modalities } from "#catalog";
import { type Answer, fields, tag, wireOf } from "../http/fields.ts";

/** A model as each of the lists shows it. */

const price = z.object({
  unit: z.string(),
  list_usd: z.string().describe("USD per unit"),
  elite_usd: z.string().describe("USD per unit, for Elite accounts"),
});

const modality = z.enum(modalities);

/** The fields of OpenRouter's list. */
const reasoning = z.object({
  mandatory: z.boolean().describe("true: reasoning cannot be turned off"),
  supported_efforts: z.array(z.string()).describe("values of `reasoning_effort`; empty if it cannot be chosen"),
  default_effort: z.string().nullable().describe("null: the provider does not document it"),
});

/** A model in the common format (docs/api/inference.md, "Model"). */
const modelObject = fields({
  id: z.string().describe("provider/model"),
  object: tag("model"),
  created: z.int().describe("unix seconds"),
  owned_by: z.string(),
  name: z.string(),
  description: z.string().describe("one sentence, or empty"),
  type: z.enum(["text", "image", "video", "audio", "embeddings", "other"]),
  endpoint: z.string(),
  context_length: z.int(),
  max_output_tokens: z.int().optional(),
  features: z.array(z.string()),
  input_modalities: z.array(modality).describe("what a request may contain"),
  output_modalities: z.array(modality),
  supported_parameters: z
    .array(z.string())
    .describe("parameters that every upstream of the model accepts: those of a chat request, or of `x_input_schema`"),
  reasoning: reasoning.nullable().describe("null: the model does not reason"),
  deprecated_at: z
    .int()
    .nullable()
    .describe(
      "unix seconds from which the provider considers the model deprecated, possibly in the future; it is still served",
    ),
  x_elite_discount_bps: z.int(),
  x_batch_discount_bps: z.int().describe("discount of calls in batches, on what the account otherwise pays"),
  x_provider_batch_discount_bps: z
    .int()
    .nullable()
    .describe(
      "discount of calls in batches that the model's provider runs as batches of its own; null if it runs none",
    ),
  x_upstreams: z
    .array(
      z.object({
        id: z.string().describe("a name for `provider.order`, `only` and `ignore`"),
        region: z.string().nullable(),
        data_residency: z
          .string()
          .nullable()
          .describe("where requests are processed, such as `eu`; null: not promised"),
      }),
    )
    .describe("those that serve the model now, in the order in which they are tried"),
  x_pricing: z.record(z.string(), price),
  x_input_schema: z
    .record(z.string(), z.unknown())
    .optional()
    .describe("JSON Schema of the parameters, for image and media models"),
}).meta({ id: "Model" });

/** The JSON of a model, and of the list of all. */
export const sentModel = wireOf(modelObject);
export const sentModelList = z
  .object({ object: z.literal("list"), data: z.array(sentModel) })
  .meta({ id: "ModelList" });

/** `served` are the ids of the model's upstreams that some worker serves. */
export function chatModel(catalog: Catalog, model: Model, served: readonly string[]): object {
  const { maxOutputTokens, eliteDiscountBps, batchDiscountBps, inputSchema } = model;
  const discounts = model.upstreams.flatMap(({ batchDiscountBps: own }) => own ?? []);
  const shown: Answer<z.output<typeof modelObject>> = {
    ...model,
    features: [...model.features],
    maxOutputTokens: maxOutputTokens > 0 ? maxOutputTokens : undefined,
    xEliteDiscountBps: eliteDiscountBps,
    xBatchDiscountBps: batchDiscountBps,
    xProviderBatchDiscountBps: discounts.length > 0 ? Math.max(batchDiscountBps, ...discounts) : null,
    xUpstreams: served.map((id) => {
      const { region = null, dataResidency = null } = catalog.upstreams.get(id) ?? {};
      return { id, region, data_residency: dataResidency };
    }),
    xPricing: model.pricing,
    xInputSchema: inputSchema,
  };
  return z.encode(modelObject, shown as z.output<typeof modelObject>);
}

/** A provider's own models are listed under that provider's names for them. */
export const nameFor = (provider: string, { id, ownedBy, aliases: [alias = id] }: Model) =>
  ownedBy === provider ? alias : id;

const dateOf = (seconds: number): string => new Date(seconds * 1000).toISOString().replace(".000Z", "Z");

const isDeprecated = (model: Model, now: number): model is Model & { readonly deprecatedAt: number } =>
  model.deprecatedAt !== null && model.deprecatedAt * 1000 <= now;

export const lifecycleOf = (model: Model, now: number) => (isDeprecated(model, now) ? "deprecated" : "active");

/** The fields of `ModelInfo` in the official client. Null stands for what the catalog does not know. */
export const messagesModel = (model: Model, now: number) => ({
  type: "model",
  id: nameFor("anthropic", model),
  display_name: model.name,
  created_at: dateOf(model.created),
  max_input_tokens: model.contextLength,
  max_tokens: model.maxOutputTokens,
  // Its members could only say `supported: false`, which would be wrong for requests that pass through.
  capabilities: null,
  lifecycle: lifecycleOf(model, now),
  deprecated_at: isDeprecated(model, now) ? dateOf(model.deprecatedAt) : null,
  retires_at: null,
  line: null,
});

/** Google's list does not name streaming as a method. */
export const geminiModel = (model: Model) => ({
  name: `models/${nameFor("google", model)}`,
  displayName: model.name,
  ...(model.description !== "" && { description: model.description }),
  inputTokenLimit: model.contextLength,
  outputTokenLimit: model.maxOutputTokens,
  thinking: model.reasoning !== null,
  supportedGenerationMethods: ["generateContent", "countTokens"],
});
