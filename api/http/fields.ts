import { z } from "zod";
import { formatUsd, parseUsd } from "#money";

/**
 * Fields of JSON bodies, with the values that they stand for. Decoding reads a request, encoding renders an answer.
 *
 *   usd           "12.50"      a bigint of nano-USD
 *   unixSeconds   1767225600   a Date
 *   orNull(x)     null         null or undefined
 *   tag("key")    "key"        nothing: every object of this kind has it
 *   fields({...}) snake_case   the same fields in camelCase; `cost_usd` is `costNanoUsd`
 */

const notUsd = 'expected USD other than 0 with at most 9 decimals, like "25.00"';

const amount = (wire: z.ZodString) =>
  z.codec(wire, z.bigint(), {
    decode: (text, context) => {
      const nanoUsd = parseUsd(text);
      if (nanoUsd !== undefined) return nanoUsd;
      context.issues.push({ code: "custom", message: notUsd, input: text });
      return z.NEVER;
    },
    encode: formatUsd,
  });

/** An amount: an exact decimal string. */
export const usd = amount(z.string().meta({ example: "12.5" }));

/** An amount in a request. It must be a string, because a JSON number would lose digits. */
export const usdInput = amount(z.string().regex(/^(?=.*[1-9])-?\d{1,10}(\.\d{1,9})?$/, notUsd));

export const positiveUsd = usdInput.refine((nanoUsd) => nanoUsd > 0n, "must be more than 0");

export const secondsAsDate = (wire: z.ZodType<number, number>) =>
  z.codec(wire, z.date(), {
    decode: (seconds) => new Date(seconds * 1_000),
    encode: (date) => Math.floor(date.getTime() / 1_000),
  });

export const unixSeconds = secondsAsDate(z.int().describe("unix seconds"));

/** Like `unixSeconds`, for a time in milliseconds. */
export const unixSecondsOfMs = z.codec(z.int().describe("unix seconds"), z.number(), {
  decode: (seconds) => seconds * 1_000,
  encode: (ms) => Math.floor(ms / 1_000),
});

/** Renders a missing value as null. */
export const orNull = <Schema extends z.ZodType>(schema: Schema) =>
  z.codec(schema.nullable(), z.custom<z.output<Schema> | null | undefined>().optional(), {
    decode: (value) => value,
    encode: (value) => (value ?? null) as z.output<Schema> | null,
  });

export const tag = <Name extends string>(name: Name) =>
  z.codec(z.literal(name), z.unknown().optional(), { decode: () => undefined, encode: () => name });

type Shape = Readonly<Record<string, z.ZodType>>;

type Camel<Name> = Name extends `${infer Amount}_usd`
  ? `${Camel<Amount>}NanoUsd`
  : Name extends `${infer First}_${infer Rest}`
    ? `${First}${Capitalize<Camel<Rest>>}`
    : Name;

const camel = (name: string): string =>
  name.replace(/_usd$/, "_nano_usd").replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

type CamelFields<Fields> = { [Name in keyof Fields as Camel<Name>]: Fields[Name] };

/** The value that a handler returns for a schema. Lists and objects may be read-only. */
export type Answer<Value> = Value extends Date
  ? Value
  : Value extends readonly (infer Item)[]
    ? readonly Answer<Item>[]
    : Value extends object
      ? { readonly [Name in keyof Value]: Answer<Value[Name]> }
      : Value;

function renamed<Object extends z.ZodObject>(wire: Object) {
  const names = Object.keys(wire.shape).map((name) => [name, camel(name)] as const);
  type Sent = z.output<Object>;
  return z.codec(wire, z.custom<CamelFields<Sent>>(), {
    decode: (sent: Record<string, unknown>) =>
      Object.fromEntries(
        names.filter(([name]) => name in sent).map(([name, own]) => [own, sent[name]]),
      ) as CamelFields<Sent>,
    // Encode every name, because a missing field and an undefined one are the same.
    encode: (value) => {
      const own = value as Record<string, unknown>;
      return Object.fromEntries(names.map(([name, from]) => [name, own[from]])) as Sent;
    },
  });
}

/** An object in an answer. Fields of the value that the schema does not name are not sent. */
export const fields = <Fields extends Shape>(shape: Fields) => renamed(z.object(shape));

/** An object in a request. Unknown fields are refused. */
export const inputFields = <Fields extends Shape>(shape: Fields) => renamed(z.strictObject(shape));

const wires = new WeakMap<z.core.$ZodType, z.ZodType>();

/** The wire side of a schema, for the OpenAPI document. Cached, because a component needs a single definition. */
export function wireOf(schema: z.core.$ZodType): z.ZodType {
  const known = wires.get(schema);
  if (known) return known;
  const built = build(schema);
  const meta = built === schema ? undefined : z.globalRegistry.get(schema);
  const wire = meta ? built.meta(meta) : built;
  wires.set(schema, wire);
  return wire;
}

function build(schema: z.core.$ZodType): z.ZodType {
  const { def } = (schema as z.core.$ZodTypes)._zod;
  const same = schema as z.ZodType;
  if (def.type === "pipe") return wireOf(def.in);
  if (def.type === "array") {
    const element = wireOf(def.element);
    return element === def.element ? same : z.array(element);
  }
  if (def.type === "nullable" || def.type === "optional") {
    const inner = wireOf(def.innerType);
    if (inner === def.innerType) return same;
    return def.type === "nullable" ? inner.nullable() : inner.optional();
  }
  if (def.type !== "object") return same;
  const shape = mapValues(def.shape, wireOf);
  return Object.keys(shape).every((name) => shape[name] === def.shape[name])
    ? same
    : (schema as z.ZodObject).clone({ ...def, shape });
}

const mapValues = (shape: z.core.$ZodShape, map: (field: z.core.$ZodType) => z.ZodType) =>
  Object.fromEntries(Object.entries(shape).map(([name, field]) => [name, map(field)]));
