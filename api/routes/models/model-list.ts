import { z } from "zod";
import type { Catalog, Model } from "#catalog";
import type { WorkerRegistry } from "#jobs";

export interface ModelDeps {
  readonly catalog: Catalog;
  readonly registry: WorkerRegistry;
}

/** The models in one API's format. Throws 400 for a bad parameter, 404 for an unknown model. */
export interface ModelList {
  list(query: unknown): object;
  get(id: string): object;
}

/** A place in the order of the lists, even if the model at it is no longer listed. */
export type Place = Pick<Model, "created" | "id">;

/** Newest first, as in the providers' lists; models of one day are ordered by id. */
const compare = (one: Place, other: Place): number => {
  if (one.created !== other.created) return other.created - one.created;
  return one.id < other.id ? -1 : Number(one.id > other.id);
};

export const newestFirst = (models: readonly Model[]): readonly Model[] => models.toSorted(compare);

export const comesAfter = (model: Place, place: Place): boolean => compare(model, place) > 0;

/** Query parameters are text. */
export const wholeNumber = z.string().regex(/^\d+$/, "must be a whole number").transform(Number);
