import { mebi } from "./input.ts";

/** JSON that is just within the limits of a body (shared/formats/scan-json.ts), as text. */
export interface Shape {
  readonly name: string;
  readonly isShort?: boolean;
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

export const shapes: readonly Shape[] = [
  { name: "base64, 20 MB", isShort: true, make: () => textOf("QUJD") },
  { name: "escaped line feeds", make: () => `"${"\\n".repeat(escapes)}"` },
  { name: "escaped quotes", make: () => `"${'\\"'.repeat(escapes)}"` },
  { name: "escapes by code", isShort: true, make: () => `"${"\\u6f22".repeat(escapes)}"` },
  { name: "halves of characters by code", make: () => `"${"\\ud83d".repeat(escapes)}"` },
  { name: "three bytes a character", make: () => textOf("漢") },
  { name: "emoji", make: () => textOf("😀") },
  { name: "ASCII after one other character", make: () => `"漢${"a".repeat(textBytes)}"` },
  { name: "texts of 400 bytes", make: () => listOf(values, () => textOf("abcd", 400)) },
  { name: "20 texts of 1 MB", make: () => listOf(20, () => textOf("ab ", mebi)) },
  { name: "empty objects", isShort: true, make: () => listOf(values, () => "{}") },
  { name: "empty lists", make: () => listOf(values, () => "[]") },
  { name: "nulls", make: () => listOf(values, () => "null") },
  {
    name: "an object of many names",
    isShort: true,
    make: () => objectOf(names, (at) => `"${"k".repeat(190)}${at}":1`),
  },
  { name: "objects of one name each", make: () => listOf(names, (at) => `{"k${at}":1}`) },
  { name: "three names of 1 MB", make: () => objectOf(3, (at) => `"${"k".repeat(mebi)}${at}":1`) },
  { name: "one name again and again", make: () => objectOf(values, () => '"k":1') },
  { name: "one name of 20 texts of 1 MB", make: () => objectOf(20, () => `"k":${textOf("ab ", mebi)}`) },
  {
    name: "numbers as names",
    make: () => objectOf(names, (at) => `"${(at * 214_013) % 4_294_967_291}":1`),
  },
  { name: "__proto__ again and again", make: () => objectOf(values, () => '"__proto__":{}') },
  { name: "__proto__ in depth", make: () => nestedObjects(levels, "__proto__") },
  { name: "whole numbers", isShort: true, make: () => listOf(199_000, (at) => String(2_000_000_000 + at)) },
  { name: "long fractions", make: () => listOf(values, () => `0.${"1234567890".repeat(9)}`) },
  { name: "numbers with exponents", make: () => listOf(values, (at) => `${"9".repeat(90)}.1e-${at % 400}`) },
  { name: "lists in lists", isShort: true, make: () => listOf(480, () => nestedLists(levels)) },
  { name: "objects in objects", make: () => listOf(480, () => nestedObjects(levels, "a")) },
  {
    name: "fields in other orders",
    make: () => listOf(4_400, (at) => objectOf(10, (field) => `"k${(at * 7 + field * 13) % 97}":1`)),
  },
  { name: "white space", make: () => `${" ".repeat(24 * mebi)}1` },
];
