import { expect, test } from "vitest";
import { reasonSlow } from "../hostile/attack-regexps.ts";

test.each([
  /;.*$/,
  /0+$/,
  /^data:([^;,]*)[^,]*;base64,(.+)$/is,
  /(https?:\/\/[^\s?"']+)\?[^\s"']*/g,
  /[\\/]{2}[^\s/]*\bapi\.example\.com\b/i,
  /\berr: (.*?), meta: /s,
  / \(.*?\)/,
  /\B(?=(\d{3})+$)/g,
  /(\.\.\.)?"[\s\S]*"(\.\.\.)? is not valid JSON/,
  /^(a+)+$/,
])("%s may take more than linear time", (regexp) => {
  expect(reasonSlow(regexp)).toBeTypeOf("string");
});

test.each([/^[a-z]{1,64}$/, /(?<!0)0+$/, /^data:([^;,]*)(?:;[^;,]*)*;base64,/i, /\bmax_tokens\b.{0,120}at most/])(
  "%s takes linear time",
  (regexp) => {
    expect(reasonSlow(regexp)).toBeUndefined();
  },
);
