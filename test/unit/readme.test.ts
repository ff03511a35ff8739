import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { currentReadme } from "../../infra/cli/readme.ts";

test("the README's tables of configuration and errors are current (npm run readme)", () => {
  const readme = readFileSync("README.md", "utf8");
  expect(readme).toBe(currentReadme(readme));
  expect(readme).toContain("`MONGODB_URI`");
  expect(readme).toContain("`insufficient_balance`");
});
