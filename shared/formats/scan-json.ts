import { isAscii } from "node:buffer";
import { invalidValue } from "#errors";

/** Limits of the JSON in one body. docs/api/inference.md, part 8. */
export interface JsonLimits {
  /** Elements of lists, and fields. Integers of up to ten digits in lists, such as tokens, are counted separately. */
  readonly values: number;
  readonly wholeNumbers: number;
  /** Distinct field names in their escaped form. */
  readonly names: number;
  /** Total size of all field names. */
  readonly nameBytes: number;
  readonly levels: number;
  /** Backslashes in strings. Each escaped character is escaped again when the string is written. */
  readonly escapes: number;
  /** Bytes of texts and names that are not ASCII. */
  readonly otherBytes: number;
  /** Bytes of the outermost field `tools`, whose schemas are written again for the provider and in some responses. */
  readonly toolBytes: number;
  /** Characters of one number. */
  readonly numberLength: number;
}

/** One body within these limits is parsed and checked in less than 100 ms. */
export const jsonLimits: JsonLimits = {
  values: 50_000,
  wholeNumbers: 200_000,
  names: 20_000,
  nameBytes: 4 * 1024 * 1024,
  levels: 128,
  escapes: 800_000,
  otherBytes: 8 * 1024 * 1024,
  toolBytes: 4 * 1024 * 1024,
  numberLength: 100,
};

/** Allows as many integers as an embeddings request may have tokens. */
export const embeddingsJsonLimits: JsonLimits = { ...jsonLimits, wholeNumbers: 256 * 8_192 };

/** Used to count values only. */
export const unlimitedJson = Object.fromEntries(
  Object.keys(jsonLimits).map((name) => [name, Number.POSITIVE_INFINITY]),
) as unknown as JsonLimits;

/** Heap bytes per value, excluding string contents: the most that V8 takes on average, for one-field objects. */
const heapBytesOf = { value: 128, name: 128, wholeNumber: 8 } as const;

/** Most strings are shorter, and reading their bytes one by one is faster than two native calls. */
const shortString = 32;
const wholeNumberLength = 10;

const code = (character: string) => character.charCodeAt(0);
const [quote, backslash, comma, colon] = [code('"'), code("\\"), code(","), code(":")];
const [openList, closeList, openObject] = [code("["), code("]"), code("{")];
const isDigit = (byte: number) => byte >= 0x30 && byte <= 0x39;
const isWhiteSpace = (byte: number) => byte <= 0x20;
/** Bytes that are part of a number or a literal. */
const isInWord = Uint8Array.from({ length: 256 }, (_, byte) =>
  isWhiteSpace(byte) || '"[]{},:'.includes(String.fromCharCode(byte)) ? 0 : 1,
);

/** Where a list stands that is a field of the outermost object, in bytes: after `[`, at its commas, and at `]`. */
export interface FieldList {
  readonly start: number;
  readonly commas: number[];
  /** Undefined if the list does not end. */
  end?: number;
}

export type JsonScan = ReturnType<typeof createJsonScan>;

/**
 * Counts the values that a JSON text will become, as its bytes arrive and before anything is parsed. The counts of
 * invalid JSON are arbitrary, because the parser refuses it later. `push` throws a 400 that names the limit at the
 * first byte beyond it. `lists` collects the places of the lists that are fields of the outermost object.
 */
export function createJsonScan(limits: JsonLimits = jsonLimits, lists?: FieldList[]) {
  let [values, wholeNumbers, nameBytes, escapes, otherBytes, depth] = [0, 0, 0, 0, 0, 0];
  const names = new Set<string>();
  const isListAt: boolean[] = [];
  let isList = false;
  let awaitsElement = false;
  let awaitsName = false;
  let isInString = false;
  let isInName = false;
  let isEscaped = false;
  /** The beginning of a name in an earlier chunk. */
  let nameStart = "";
  /** The last name of the outermost object. */
  let field = "";
  let [passedBytes, fieldStart] = [0, 0];
  /** Length of the current number or literal, 0 outside one. */
  let length = 0;
  let isElement = false;
  let isNumber = false;
  let isWhole = false;
  /** Position in the chunk, cached across strings: 20 MB of text may have many strings and no backslash. */
  let nextBackslash = -1;

  function tooMany(limit: number, what: string): never {
    throw invalidValue(undefined, `The body has more than ${limit} ${what}.`);
  }
  function countOtherBytes(chunk: Buffer): void {
    for (const byte of chunk) if (byte > 127) otherBytes++;
    if (otherBytes > limits.otherBytes) tooMany(limits.otherBytes, "bytes that are not ASCII");
  }
  function countValue(): void {
    if (++values > limits.values) tooMany(limits.values, "values");
  }
  function checkToolBytes(end: number): void {
    if (field === "tools" && end - fieldStart > limits.toolBytes)
      throw invalidValue("tools", `tools: is longer than ${limits.toolBytes} bytes.`);
  }
  const isFieldList = () => depth === 2 && isList && isListAt[1] === false;
  function beginElement(): void {
    if (awaitsElement) countValue();
    awaitsElement = false;
  }
  function open(list: boolean): void {
    beginElement();
    if (++depth > limits.levels) {
      const param = /^[\w.-]{1,64}$/.test(field) ? field : undefined;
      throw invalidValue(param, `${param ?? "The body"}: is nested too deep; at most ${limits.levels} levels.`);
    }
    isList = list;
    isListAt[depth] = list;
    awaitsElement = list;
    awaitsName = !list;
  }
  function close(end: number): void {
    if (depth > 0) depth--;
    if (depth === 0) {
      checkToolBytes(end);
      field = "";
    }
    isList = isListAt[depth] === true;
    awaitsElement = false;
    awaitsName = false;
  }
  function endWord(): void {
    if (length === 0) return;
    if (isElement && !(isWhole && length <= wholeNumberLength)) countValue();
    else if (isElement && ++wholeNumbers > limits.wholeNumbers) tooMany(limits.wholeNumbers, "whole numbers");
    length = 0;
  }
  function addToName(chunk: Buffer, start: number, end: number): void {
    nameBytes += end - start;
    if (nameBytes > limits.nameBytes) tooMany(limits.nameBytes, "bytes of field names");
    nameStart += chunk.toString("latin1", start, end);
  }
  function endName(end: number): void {
    if (depth === 1) {
      checkToolBytes(end);
      field = nameStart;
      fieldStart = end;
    }
    if (names.add(nameStart).size > limits.names) tooMany(limits.names, "different field names");
    nameStart = "";
  }

  /** Returns the index after the string's end, or the chunk's length. */
  function passString(chunk: Buffer, start: number): number {
    let at = start;
    if (isEscaped && at < chunk.length) {
      isEscaped = false;
      at++;
    }
    let nextQuote = -1;
    while (at < chunk.length) {
      const soon = Math.min(chunk.length, at + shortString);
      while (at < soon && chunk[at] !== quote && chunk[at] !== backslash) at++;
      if (at === soon && at < chunk.length) {
        if (nextQuote < at) nextQuote = indexOf(chunk, quote, at);
        if (nextBackslash < at) nextBackslash = indexOf(chunk, backslash, at);
        at = Math.min(nextQuote, nextBackslash);
      }
      if (chunk[at] === quote) {
        isInString = false;
        if (!isInName) return at + 1;
        addToName(chunk, start, at);
        endName(passedBytes + at);
        return at + 1;
      }
      if (chunk[at] === backslash && ++escapes > limits.escapes) tooMany(limits.escapes, "escaped characters");
      // This is a backslash or the end of the chunk.
      at += 2;
    }
    isEscaped = at === chunk.length + 1;
    if (isInName) addToName(chunk, start, chunk.length);
    return chunk.length;
  }

  /** Returns the index after a number or a literal, or the chunk's length. */
  function passWord(chunk: Buffer, start: number): number {
    let at = start;
    let byte = chunk[at] as number;
    if (length === 0) {
      isElement = awaitsElement;
      awaitsElement = false;
      isNumber = byte === code("-") || isDigit(byte);
      isWhole = isNumber;
    }
    for (; at < chunk.length && isInWord[(byte = chunk[at] as number)] === 1; at++) if (!isDigit(byte)) isWhole = false;
    length += at - start;
    if (isNumber && length > limits.numberLength)
      throw invalidValue(undefined, `The body has a number of more than ${limits.numberLength} characters.`);
    return at;
  }

  return {
    push(chunk: Buffer): void {
      if (!isAscii(chunk)) countOtherBytes(chunk);
      nextBackslash = -1;
      let at = 0;
      while (at < chunk.length) {
        if (isInString) {
          at = passString(chunk, at);
          continue;
        }
        const byte = chunk[at] as number;
        if (isInWord[byte] === 1) {
          at = passWord(chunk, at);
          continue;
        }
        at++;
        endWord();
        if (isWhiteSpace(byte)) {
          while (at < chunk.length && isWhiteSpace(chunk[at] as number)) at++;
        } else if (byte === quote) {
          beginElement();
          isInString = true;
          isInName = awaitsName;
          awaitsName = false;
        } else if (byte === comma) {
          awaitsElement = isList;
          awaitsName = !isList;
          if (isFieldList()) lists?.at(-1)?.commas.push(passedBytes + at - 1);
        } else if (byte === colon) countValue();
        else if (byte === openList || byte === openObject) {
          open(byte === openList);
          if (isFieldList()) lists?.push({ start: passedBytes + at, commas: [] });
        } else {
          const last = byte === closeList && isFieldList() ? lists?.at(-1) : undefined;
          if (last) last.end = passedBytes + at - 1;
          close(passedBytes + at);
        }
      }
      passedBytes += chunk.length;
      checkToolBytes(passedBytes);
    },
    get counts() {
      return { values, wholeNumbers, names: names.size, nameBytes, escapes, otherBytes };
    },
    /** Estimated heap size of the values, excluding the text of their strings. */
    get heapBytes(): number {
      const { value, name, wholeNumber } = heapBytesOf;
      return values * value + names.size * name + wholeNumbers * wholeNumber;
    },
  };
}

function indexOf(chunk: Buffer, byte: number, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at === -1 ? chunk.length : at;
}

/** Counts the values of the JSON in a string. Throws if there are more than `most`. */
export function valuesIn(text: string, most: number): number {
  const scan = createJsonScan({ ...unlimitedJson, values: most, wholeNumbers: most });
  scan.push(Buffer.from(text));
  return scan.counts.values + scan.counts.wholeNumbers;
}
