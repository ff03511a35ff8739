/** A model's JSON Schema of its parameters, as form fields. The user types unsupported fields as JSON. */

type Schema = Readonly<Record<string, unknown>>;

interface Common {
  readonly name: string;
  readonly description: string | undefined;
  readonly isRequired: boolean;
  readonly initial: unknown;
}

export type InputField = Common &
  (
    | { readonly kind: "choice"; readonly options: readonly string[] }
    | { readonly kind: "number"; readonly min?: number; readonly max?: number; readonly isWhole: boolean }
    | { readonly kind: "text"; readonly isLong: boolean; readonly maxLength?: number }
    | { readonly kind: "switch" | "upload" | "json" }
  );

const object = (value: unknown): Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Schema) : {};
const numberOr = (value: unknown) => (typeof value === "number" ? value : undefined);
const textOr = (value: unknown) => (typeof value === "string" ? value : undefined);

const takesUpload = (schema: Schema): boolean =>
  (textOr(schema["pattern"]) ?? "").startsWith("^upl_") ||
  (Array.isArray(schema["anyOf"]) && schema["anyOf"].some((each) => takesUpload(object(each))));

const longTexts = /prompt|text|lyrics|script|description/;
const longAtLeast = 200;

function kindOf(name: string, schema: Schema) {
  const { type, enum: options, minimum, maximum, maxLength } = schema;
  if (Array.isArray(options)) return { kind: "choice" as const, options: options.map(String) };
  if (takesUpload(schema)) return { kind: "upload" as const };
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
    const most = numberOr(maxLength);
    const isLong = longTexts.test(name) && (most ?? longAtLeast) >= longAtLeast;
    return { kind: "text" as const, isLong, ...(most !== undefined && { maxLength: most }) };
  }
  return { kind: "json" as const };
}

/** Required fields first, in the order of the schema. */
export function inputFields(schema: unknown): readonly InputField[] {
  const { properties, required } = object(schema);
  const needed: readonly unknown[] = Array.isArray(required) ? required : [];
  const fields = Object.entries(object(properties)).map(([name, property]): InputField => {
    const each = object(property);
    const isRequired = needed.includes(name) || name === "prompt";
    return {
      name,
      description: textOr(each["description"]),
      isRequired,
      initial: each["default"],
      ...kindOf(name, each),
    };
  });
  return [...fields.filter(({ isRequired }) => isRequired), ...fields.filter(({ isRequired }) => !isRequired)];
}

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
      if (text === "") return [];
      return [[field.name, valueOf(field, text, object(properties[field.name]))]];
    }),
  );
}

function valueOf({ kind }: InputField, text: string, { enum: options }: Schema): unknown {
  switch (kind) {
    case "choice":
      return (Array.isArray(options) ? options : []).find((option) => String(option) === text) ?? text;
    case "number":
      return Number(text);
    case "switch":
      return text === "true";
    case "json":
      return JSON.parse(text) as unknown;
    case "text":
    case "upload":
      return text;
  }
}
