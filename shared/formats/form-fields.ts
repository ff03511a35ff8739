import { invalidValue } from "#errors";
import type { JsonObject } from "#json";

/** The text fields of a form, in their order. */
export type FormFields = readonly (readonly [name: string, value: string])[];

/** Lists come as `include[]`, one field for each item. Throws 400 for another field that comes twice. */
export function ofForm(fields: FormFields): JsonObject {
  const value = new Map<string, string | string[]>();
  for (const [name, each] of fields) {
    const [, listName] = /^(.+)\[\]$/s.exec(name) ?? [];
    if (listName === undefined && value.has(name)) throw invalidValue(name, `The form has the field '${name}' twice.`);
    if (listName === undefined) value.set(name, each);
    else value.set(listName, [...[value.get(listName) ?? []].flat(), each]);
  }
  return Object.fromEntries(value);
}
