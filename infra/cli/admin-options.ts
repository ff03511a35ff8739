import { type Command, InvalidArgumentError, Option } from "commander";

/** The parts of a field's JSON schema that determine its option. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly description?: string;
}

/** An operation of the admin API, in the shape of admin-operations.json. */
export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly description?: string;
  readonly fields: Readonly<Record<string, Schema>>;
  readonly required: readonly string[];
}

export type Body = Readonly<Record<string, unknown>>;

function wholeNumber(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("It must be a positive whole number.");
  return Number(text);
}
/** Commander treats null as an absent value, so false represents the default. */
const wholeNumberOrDefault = (text: string) => text !== "default" && wholeNumber(text);

/** Parses a budget such as `5/day`. */
function budgetOf(text: string): object {
  const [, usd, period] = /^(\d+(?:\.\d+)?)\/(day|week|month|total)$/.exec(text) ?? [];
  if (usd === undefined)
    throw new InvalidArgumentError("It must have a form like 5/day, 20/week, 50/month or 100/total.");
  return { limit_usd: usd, period };
}

/** Milliseconds of a day at the given time, or of a time in ISO 8601. UTC, unless the text has an offset. */
function utcMs(text: string, timeOfDay: string): number {
  const time = text.includes("T") ? text : `${text}T${timeOfDay}`;
  return Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/i.test(time) ? time : `${time}Z`);
}

/** Parses an expiry time. A day without a time expires at its end. */
function endOf(text: string): number {
  const ms = utcMs(text, "23:59:59");
  if (Number.isNaN(ms)) throw new InvalidArgumentError("It must be a day, or a time in ISO 8601.");
  return Math.floor(ms / 1_000);
}

/** Parses a date, a time, or Unix seconds. */
function unixTime(text: string): number {
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : utcMs(text, "00:00:00");
  if (Number.isNaN(ms))
    throw new InvalidArgumentError("It must be a date such as 2026-01-31, a time, or unix seconds.");
  return Math.floor(ms / 1_000);
}

const each = (value: string, before: readonly string[] = []) => [...before, value];

/** Options whose name or notation differs from that of their field. */
const special: Readonly<Record<string, readonly [flag: string, parse: (text: string) => unknown, text: string]>> = {
  scopes: ["--scope <scope>", each, "inference (default) or manage; repeat for both"],
  models: ["--model <model>", each, "a model that the key may call, or 'provider/*'; repeat for several"],
  budget: [
    "--budget <usd/period>",
    budgetOf,
    "maximum cost of its calls per day, week, month or in total, such as 5/day",
  ],
  expires_at: ["--expires <time>", endOf, "a date, or a time in ISO 8601, in UTC unless it has an offset"],
  from: ["--from <date>", unixTime, "only from this time on"],
  to: ["--to <date>", unixTime, "only before this time"],
  idempotency_key: ["--idempotency-key <key>", String, "a credit is added once per key (default: a new key)"],
};

const typesOf = ({ type, anyOf = [] }: Schema) => [type, ...anyOf.map((one) => one.type)].flat();

function optionOf(name: string, schema: Schema): Option {
  const [flags, parse, text] = special[name] ?? [];
  if (flags) return new Option(flags, text).argParser(parse as (text: string) => unknown);
  const flag = `--${name.replaceAll("_", "-")}`;
  const types = typesOf(schema);
  if (types.includes("boolean") || schema.enum?.includes("true")) return new Option(flag, schema.description);
  const isNullable = types.includes("null");
  if (types.includes("integer"))
    return new Option(`${flag} <count>`, isNullable ? "'default' removes the limit" : schema.description).argParser(
      isNullable ? wholeNumberOrDefault : wholeNumber,
    );
  const option = new Option(`${flag} <${name.split("_").at(-1)}>`, schema.description);
  return schema.enum ? option.choices(schema.enum) : option;
}

/** Adds the options of an operation to its command. Returns a function that builds the operation's input from them. */
export function addOptions(command: Command, { method, fields, required }: Operation, without: readonly string[]) {
  const add = (name: string, schema: Schema, isInner = false): ((options: Body) => Body) => {
    if (name === "frozen") {
      command.addOption(new Option("--freeze", "refuse the account's calls").conflicts("unfreeze"));
      command.option("--unfreeze", "accept the account's calls again");
      return ({ freeze, unfreeze }) => (freeze || unfreeze ? { frozen: freeze === true } : {});
    }
    if (schema.properties && !special[name]) {
      const inner = Object.entries(schema.properties).map(([field, one]) => add(field, one, true));
      return (options) => {
        const set = joined(inner, options);
        return Object.keys(set).length > 0 ? { [name]: set } : {};
      };
    }
    const option = optionOf(name, schema);
    command.addOption(option.makeOptionMandatory(required.includes(name) && name !== "idempotency_key"));
    if (method === "PATCH" && typesOf(schema).includes("null") && !isInner)
      command.option(`${option.long}`.replace("--", "--no-"), "removes it");
    return (options) => {
      const value = options[option.attributeName()];
      // The `--no-` option that removes the value sets it to false.
      return value === undefined ? {} : { [name]: option.required && value === false ? null : value };
    };
  };
  const sets = Object.entries(fields).flatMap(([name, schema]) => (without.includes(name) ? [] : [add(name, schema)]));
  return (options: Body) => joined(sets, options);
}

const joined = (sets: readonly ((options: Body) => Body)[], options: Body): Body =>
  Object.assign({}, ...sets.map((set) => set(options)));
