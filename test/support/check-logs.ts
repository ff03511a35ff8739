import { afterAll } from "vitest";
import { takeLeaks } from "./logs.ts";

// A hook that is set first runs last: whatever the file started has ended by then.
afterAll(() => {
  const leaks = takeLeaks();
  if (leaks.length > 0) throw new Error(`log lines that hold a prompt or a secret:\n${leaks.slice(0, 5).join("\n")}`);
});
