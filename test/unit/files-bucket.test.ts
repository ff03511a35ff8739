import { expect, test } from "vitest";
import { mergeById } from "../../shared/files/bucket.ts";

interface Rule {
  readonly ID?: string;
  readonly Days: number;
  readonly Filter: { readonly Prefix: string };
}

const ours: Rule[] = [{ ID: "ours", Days: 2, Filter: { Prefix: "uploads/" } }];
const theirs: Rule = { ID: "theirs", Days: 9, Filter: { Prefix: "" } };
const nameless: Rule = { Days: 5, Filter: { Prefix: "logs/" } };

test("our rules are added to the existing ones", () => {
  expect(mergeById([], ours)).toEqual(ours);
  expect(mergeById([theirs, nameless], ours)).toEqual([theirs, nameless, ...ours]);
});

test("a changed rule of ours is restored; others stay", () => {
  const changed: Rule = { ID: "ours", Days: 30, Filter: { Prefix: "uploads/" } };
  expect(mergeById([changed, theirs], ours)).toEqual([theirs, ...ours]);
});

test("nothing is written when our rules exist, whatever the server adds to them", () => {
  const there = { ID: "ours", Days: 2, Filter: { Prefix: "uploads/" }, Extra: true };
  expect(mergeById([theirs, there], ours)).toBeUndefined();
});
