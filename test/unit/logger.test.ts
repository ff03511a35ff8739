import { expect, test } from "vitest";
import { createLogger } from "../../shared/platform/logger.ts";

function written(err: unknown) {
  const lines: string[] = [];
  createLogger("test", "info", { write: (line) => void lines.push(line) }).warn({ err }, "why");
  return JSON.parse(lines.join(""));
}

test("an error is logged with its causes", () => {
  const { err, msg } = written(new Error("no answer", { cause: new RangeError("reset") }));
  expect(msg).toBe("why");
  expect(err).toMatchObject({
    type: "Error",
    message: "no answer: reset",
    stack: expect.stringContaining("RangeError"),
  });
});

test("an error that nothing can be written on, or in, is logged all the same", () => {
  const frozen = Object.assign(new Error("HTTP 429"), { context: Object.freeze({ message: "Too Many Requests" }) });
  for (const error of [frozen, Object.freeze(new Error("HTTP 429"))])
    expect(written(error)).toMatchObject({ msg: "why", err: { message: "HTTP 429", stack: expect.any(String) } });
  expect(written("no error at all")).toMatchObject({ msg: "why", err: "no error at all" });
});
