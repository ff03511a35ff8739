import { type JsonObject, object } from "#json";

/**
 * Converts the parts at a path of fields (`["messages", "content"]`, through lists). Returns the request unchanged if the
 * path leads to no list. `path` names a part as the `param` of errors does.
 */
export function mapParts(
  holder: JsonObject,
  [field = "", ...inner]: readonly string[],
  convert: (part: JsonObject, path: string) => JsonObject,
  holderPath = "",
): JsonObject {
  const value = holder[field];
  const path = holderPath ? `${holderPath}.${field}` : field;
  const map = (each: unknown, eachPath: string): JsonObject =>
    inner.length > 0 ? mapParts(object(each), inner, convert, eachPath) : convert(object(each), eachPath);
  if (Array.isArray(value)) return { ...holder, [field]: value.map((each: unknown, i) => map(each, `${path}[${i}]`)) };
  const isHolder = inner.length > 0 && typeof value === "object" && value !== null;
  return isHolder ? { ...holder, [field]: map(value, path) } : holder;
}
