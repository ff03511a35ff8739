import { z } from "zod";
import type { Catalog, Model } from "#catalog";
import type { WorkerRegistry } from "#jobs";

export interface ModelDeps {
  readonly catalog: Catalog;
  readonly registry: WorkerRegistry;
}

/** The models as one provider's clients list them. Both throw a ServiceError: for a parameter at fault, for no such model. */
export interface ModelList {
  list(query: unknown): object;
  get(id: string): object;
}

/** A place in the order of the lists, whether or not a model still has it. */
export type Place = Pick<Model, "created" | "id">;

/** The order of the providers' own lists; models of one day by their ids, so that no two share a place. */
const compare = (one: Place, other: Place): number => {
  if (one.created !== other.created) return other.created - one.created;
  return one.id < other.id ? -1 : Number(one.id > other.id);
};

export const newestFirst = (models: readonly Model[]): readonly Model[] => models.toSorted(compare);

export const comesAfter = (model: Place, place: Place): boolean => compare(model, place) > 0;

/** Of a query, where everything is text. */
export const wholeNumber = z.string().regex(/^\d+$/, "must be a whole number").transform(Number);
