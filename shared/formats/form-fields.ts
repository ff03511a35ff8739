import { invalidValue } from "#errors";
import type { JsonObject } from "#json";

/** The text fields of a form, in order. */
export type FormFields = readonly (readonly [name: string, value: string])[];

/** Lists arrive as `include[]`, one field per item. Throws 400 if any other field occurs twice. */
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
