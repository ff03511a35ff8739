import { z } from "zod";
import type { Model } from "#catalog";
import { invalidValue, modelNotFound } from "#errors";
import { findModel, isListed, isServedIn } from "../../admission/model.ts";
import { parse } from "../../http/input.ts";
import { comesAfter, type ModelDeps, type ModelList, newestFirst, type Place, wholeNumber } from "./model-list.ts";

/** As in Google's API: a larger page size is reduced, and 0 or an empty token mean the default. */
const listQuery = z.object({
  pageSize: wholeNumber.transform((size) => Math.min(size || 50, 1000)).default(50),
  pageToken: z.string().default(""),
});

/** The last model of a page, not an offset: the list may change between two requests. */
const tokenOf = ({ created, id }: Place) => Buffer.from(`${created} ${id}`).toString("base64url");

function placeOf(token: string): Place {
  const [, created, id] = /^(\d+) (.+)$/.exec(Buffer.from(token, "base64url").toString()) ?? [];
  const place = id === undefined ? undefined : { created: Number(created), id };
  if (!place || tokenOf(place) !== token) throw invalidValue("pageToken", "pageToken: not a token of this list.");
  return place;
}

/** Google's own models are listed under Google's names for them. */
const nameOf = ({ id, ownedBy, aliases: [alias = id] }: Model) => `models/${ownedBy === "google" ? alias : id}`;

/** Google's list does not name streaming as a method. */
const render = (model: Model) => ({
  name: nameOf(model),
  displayName: model.name,
  inputTokenLimit: model.contextLength,
  outputTokenLimit: model.maxOutputTokens,
  supportedGenerationMethods: ["generateContent", "countTokens"],
});

/** `models.list` and `models.get` of the Gemini API: every model for text. */
export function geminiModels({ catalog, registry }: ModelDeps): ModelList {
  const models = newestFirst(catalog.list().filter((model) => isServedIn("gemini", model)));
  return {
    list(query) {
      const { pageSize, pageToken } = parse(listQuery, query);
      const listed = models.filter((model) => isListed(registry, model));
      const place = pageToken === "" ? undefined : placeOf(pageToken);
      const remaining = place ? listed.filter((model) => comesAfter(model, place)) : listed;
      const page = remaining.slice(0, pageSize);
      const last = page.length < remaining.length ? page.at(-1) : undefined;
      return { models: page.map(render), ...(last && { nextPageToken: tokenOf(last) }) };
    },
    get(id) {
      const model = findModel(catalog, "gemini", id.replace(/^models\//, ""));
      if (!model || !isServedIn("gemini", model) || !isListed(registry, model)) throw modelNotFound(id);
      return render(model);
    },
  };
}
