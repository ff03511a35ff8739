/** The model behind the mock providers, in no provider's format: answers depend only on the request. */

/** The mock's tokens are words, so that a reader can count them. */
export const wordsOf = (text: string): readonly string[] => text.match(/\s*\S+/g) ?? [];

/** Splits a text into the pieces of a stream. */
export type Cut = (text: string) => readonly string[];

/** Every text in a request, in its order. */
export function textsOf(value: unknown): string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (typeof value !== "object" || value === null) return [];
  const { text, content, input, output, system, messages, instructions } = value as Record<string, unknown>;
  return [text, system, instructions, content, messages, input, output].flatMap(textsOf);
}

export interface MockTool {
  readonly name: string;
  readonly schema: unknown;
}

export interface MockCall {
  readonly name: string;
  readonly input: Record<string, unknown>;
}

/**
 * One call of each tool that the prompt names, with the smallest input that its schema allows. `forced` requires any
 * tool, or the one of this name.
 */
export function callsFor(tools: readonly MockTool[], prompt: string, forced?: { name?: unknown }): MockCall[] {
  const named = tools.filter(({ name }) => (forced?.name ? name === forced.name : prompt.includes(name)));
  const called = named.length === 0 && forced ? tools.slice(0, 1) : named;
  return called.map(({ name, schema }) => ({ name, input: sampleOf(schema) as Record<string, unknown> }));
}

/** The smallest value that a JSON schema allows. */
export function sampleOf(schema: unknown): unknown {
  const { type, properties, required, items, enum: values, const: only, anyOf } = (schema ?? {}) as Schema;
  if (only !== undefined) return only;
  if (values) return values[0];
  if (anyOf) return sampleOf(anyOf[0]);
  switch (Array.isArray(type) ? type[0] : type) {
    case "string":
      return "mock";
    case "integer":
    case "number":
      return 1;
    case "boolean":
      return true;
    case "null":
      return null;
    case "array":
      return [sampleOf(items)];
    default:
      return Object.fromEntries((required ?? []).map((name) => [name, sampleOf(properties?.[name])]));
  }
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly required?: readonly string[];
  readonly items?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly unknown[];
}
