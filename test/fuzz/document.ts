type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
type Fields = Readonly<Record<string, Json>>;

const isFields = (value: Json | undefined): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The only paths with `Idempotency-Key`. With the same few keys everywhere, a third of all cases would end as 409. */
const idempotent = ["/v1/chat/completions", "/v1/uploads", "/v1/media/generations"];

/**
 * The service's document for random requests: a model is one of `models` or any other string, as random text alone
 * would never get past the catalog.
 */
export function forRandomRequests(document: Json, models: readonly string[]): Json {
  const schema = { anyOf: [{ type: "string", enum: models }, { type: "string" }] };
  const visit = (value: Json, path = ""): Json => {
    if (Array.isArray(value)) return value.filter((each) => !isUnwanted(each, path)).map((each) => visit(each, path));
    if (!isFields(value)) return value;
    if (value["in"] === "path" && value["name"] === "model") return { ...value, schema };
    const fields = Object.fromEntries(
      Object.entries(value).map(([name, each]) => [name, visit(each, name.startsWith("/") ? name : path)]),
    );
    const { properties } = value;
    if (!isFields(properties) || !isFields(properties["model"])) return fields;
    return { ...fields, properties: { ...(fields["properties"] as Fields), model: schema } };
  };
  return visit(document);
}

const isUnwanted = (value: Json, path: string) =>
  isFields(value) && value["name"] === "Idempotency-Key" && value["in"] === "header" && !idempotent.includes(path);
