/** A model's JSON Schema of its parameters, as form fields. The user types unsupported fields as JSON. */

type Schema = Readonly<Record<string, unknown>>;

interface Common {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  readonly isRequired: boolean;
  readonly initial: unknown;
}

export type InputField = Common &
  (
    | { readonly kind: "choice" | "choices"; readonly options: readonly string[] }
    | { readonly kind: "number"; readonly min?: number; readonly max?: number; readonly isWhole: boolean }
    | { readonly kind: "text"; readonly isLong: boolean; readonly maxLength?: number }
    /** `most`: the number of files. */
    | { readonly kind: "upload"; readonly most: number }
    | { readonly kind: "switch" | "lines" | "json" }
  );

const object = (value: unknown): Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : {};
const numberOr = (value: unknown) => (typeof value === "number" ? value : undefined);
const textOr = (value: unknown) => (typeof value === "string" ? value : undefined);

/** The number of uploads that a field takes: one, or those of a list. Undefined if it takes none. */
function uploadsOf({ pattern, anyOf, type, items, maxItems }: Schema): number | undefined {
  if ((textOr(pattern) ?? "").startsWith("^upl_")) return 1;
  if (type === "array") return uploadsOf(object(items)) && (numberOr(maxItems) ?? Number.POSITIVE_INFINITY);
  const each = (Array.isArray(anyOf) ? anyOf : []).flatMap((branch) => uploadsOf(object(branch)) ?? []);
  return each.length > 0 ? Math.max(...each) : undefined;
}

const longTexts = /prompt|text|lyrics|script|description|instructions/;
const longAtLeast = 200;

function kindOf(name: string, schema: Schema) {
  const { type, enum: options, minimum, maximum, maxLength } = schema;
  if (Array.isArray(options)) return { kind: "choice" as const, options: options.map(String) };
  const most = uploadsOf(schema);
  if (most !== undefined) return { kind: "upload" as const, most };
  if (type === "boolean") return { kind: "switch" as const };
  if (type === "number" || type === "integer") {
    const [min, max] = [numberOr(minimum), numberOr(maximum)];
    return {
      kind: "number" as const,
      isWhole: type === "integer",
      ...(min !== undefined && { min }),
      ...(max !== undefined && { max }),
    };
  }
  if (type === "string") {
    const characters = numberOr(maxLength);
    const isLong = longTexts.test(name) && (characters ?? longAtLeast) >= longAtLeast;
    return { kind: "text" as const, isLong, ...(characters !== undefined && { maxLength: characters }) };
  }
  const { type: each, enum: choices } = object(schema["items"]);
  if (type === "array" && Array.isArray(choices)) return { kind: "choices" as const, options: choices.map(String) };
  return { kind: type === "array" && each === "string" ? ("lines" as const) : ("json" as const) };
}

/** The prompt and required fields first, in the order of the schema. */
export function inputFields(schema: unknown): readonly InputField[] {
  const { properties, required } = object(schema);
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const fields = Object.entries(object(properties)).map(([name, property]): InputField => {
    const each = object(property);
    return {
      name,
      title: textOr(each["title"]),
      description: textOr(each["description"]),
      isRequired: needed.includes(name),
      initial: each["default"],
      ...kindOf(name, each),
    };
  });
  const isFirst = ({ name, isRequired }: InputField) => isRequired || name === "prompt";
  return [...fields.filter(isFirst), ...fields.filter((field) => !isFirst(field))];
}

/** The values of a field that has several, one a line. */
export const linesOf = (text: string): readonly string[] =>
  text.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));

/** Converts the form's texts to an input. Empty ones are not sent. Throws a SyntaxError for invalid JSON. */
export function toInput(
  fields: readonly InputField[],
  schema: unknown,
  values: Readonly<Record<string, string>>,
): Record<string, unknown> {
  const properties = object(object(schema)["properties"]);
  return Object.fromEntries(
    fields.flatMap((field) => {
      const text = values[field.name] ?? "";
      if (text.trim() === "") return [];
      return [[field.name, valueOf(field, text, object(properties[field.name]))]];
    }),
  );
}

/** The value that a text stands for: a number or a word. */
const optionOf = (options: unknown, text: string): unknown =>
  (Array.isArray(options) ? options : []).find((option) => String(option) === text) ?? text;

function valueOf({ kind }: InputField, text: string, { enum: options, type, items }: Schema): unknown {
  switch (kind) {
    case "choice":
      return optionOf(options, text);
    case "choices":
      return linesOf(text).map((line) => optionOf(object(items)["enum"], line));
    case "lines":
      return linesOf(text);
    case "upload": {
      const ids = linesOf(text);
      return type === "array" || ids.length > 1 ? ids : ids[0];
    }
    case "number":
      return Number(text);
    case "switch":
      return text === "true";
    case "json":
      return JSON.parse(text) as unknown;
    case "text":
      return text;
  }
}
