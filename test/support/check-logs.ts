import { afterAll } from "vitest";
import { takeLeaks } from "./logs.ts";

// The hook registered first runs last, when everything that the file started has ended.
afterAll(() => {
  const leaks = takeLeaks();
  if (leaks.length > 0) throw new Error(`log lines that hold a prompt or a secret:\n${leaks.slice(0, 5).join("\n")}`);
});
