import { mebi } from "./input.ts";

/** JSON that is just within the limits of a body (shared/formats/scan-json.ts), as text. */
export interface Shape {
  readonly name: string;
  readonly isShort: boolean;
  readonly make: () => string;
}

/** Less than the limits, to leave space for the body around a shape. */
const [values, names, textBytes] = [49_000, 19_900, 20 * mebi];

/** Almost two million, the limit. */
const escapes = 1_990_000;

const textOf = (unit: string, bytes = textBytes) => `"${unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)))}"`;
const listOf = (count: number, itemOf: (index: number) => string) =>
  `[${Array.from({ length: count }, (_, at) => itemOf(at)).join()}]`;
const objectOf = (count: number, fieldOf: (index: number) => string) =>
  `{${Array.from({ length: count }, (_, at) => fieldOf(at)).join()}}`;
const nestedLists = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const nestedObjects = (levels: number, name: string) => `{"${name}":`.repeat(levels) + "1" + "}".repeat(levels);
const levels = 100;

const rows: readonly (readonly [name: string, make: () => string, isShort?: true])[] = [
  ["base64, 20 MB", () => textOf("QUJD"), true],
  ["escaped line feeds", () => `"${"\\n".repeat(escapes)}"`],
  ["escaped quotes", () => `"${'\\"'.repeat(escapes)}"`],
  ["escapes by code", () => `"${"\\u6f22".repeat(escapes)}"`, true],
  ["halves of characters by code", () => `"${"\\ud83d".repeat(escapes)}"`],
  ["three bytes a character", () => textOf("漢")],
  ["emoji", () => textOf("😀")],
  ["ASCII after one other character", () => `"漢${"a".repeat(textBytes)}"`],
  ["texts of 400 bytes", () => listOf(values, () => textOf("abcd", 400))],
  ["20 texts of 1 MB", () => listOf(20, () => textOf("ab ", mebi))],
  ["empty objects", () => listOf(values, () => "{}"), true],
  ["empty lists", () => listOf(values, () => "[]")],
  ["nulls", () => listOf(values, () => "null")],
  ["an object of many names", () => objectOf(names, (at) => `"${"k".repeat(190)}${at}":1`), true],
  ["objects of one name each", () => listOf(names, (at) => `{"k${at}":1}`)],
  ["three names of 1 MB", () => objectOf(3, (at) => `"${"k".repeat(mebi)}${at}":1`)],
  ["one name again and again", () => objectOf(values, () => '"k":1')],
  ["one name of 20 texts of 1 MB", () => objectOf(20, () => `"k":${textOf("ab ", mebi)}`)],
  ["numbers as names", () => objectOf(names, (at) => `"${(at * 214_013) % 4_294_967_291}":1`)],
  ["__proto__ again and again", () => objectOf(values, () => '"__proto__":{}')],
  ["__proto__ in depth", () => nestedObjects(levels, "__proto__")],
  ["whole numbers", () => listOf(199_000, (at) => String(2_000_000_000 + at)), true],
  ["long fractions", () => listOf(values, () => `0.${"1234567890".repeat(9)}`)],
  ["numbers with exponents", () => listOf(values, (at) => `${"9".repeat(90)}.1e-${at % 400}`)],
  ["lists in lists", () => listOf(480, () => nestedLists(levels)), true],
  ["objects in objects", () => listOf(480, () => nestedObjects(levels, "a"))],
  [
    "fields in other orders",
    () => listOf(4_400, (at) => objectOf(10, (field) => `"k${(at * 7 + field * 13) % 97}":1`)),
  ],
  ["white space", () => `${" ".repeat(24 * mebi)}1`],
];

export const shapes: readonly Shape[] = rows.map(([name, make, isShort]) => ({
  name,
  make,
  isShort: isShort === true,
}));
