import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { z } from "zod";
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

test("frozen and unreadable errors are logged too", () => {
  const frozen = Object.assign(new Error("HTTP 429"), { context: Object.freeze({ message: "Too Many Requests" }) });
  for (const error of [frozen, Object.freeze(new Error("HTTP 429"))])
    expect(written(error)).toMatchObject({ msg: "why", err: { message: "HTTP 429", stack: expect.any(String) } });
  expect(written("no error at all")).toMatchObject({ msg: "why", err: "no error at all" });
});

const prompt = "my diary of the year 1999";

const thrownBy = (act: () => unknown): unknown => {
  try {
    return act();
  } catch (error) {
    return error;
  }
};

test.for<readonly [string, () => unknown, RegExp]>([
  ["text that is no JSON", () => JSON.parse(prompt), /not valid JSON/],
  ["the middle of a text that is no JSON", () => JSON.parse(`{"a": ${prompt}`), /not valid JSON/],
  [
    "an input that zod refuses",
    () => z.strictObject({ a: z.literal("b") }).parse({ a: prompt, [prompt]: 1 }, { reportInput: true }),
    /invalid_value at a/,
  ],
  [
    "what hangs on an error, its causes and its parts",
    () => {
      const withBody = (name: string) => Object.assign(new Error(name), { body: prompt, request: { args: [prompt] } });
      throw new AggregateError([withBody("one"), prompt], "several", { cause: withBody("the cause") });
    },
    /several: the cause/,
  ],
  [
    "a message of many lines that looks like a stack",
    () => {
      throw new Error(`short\n${"x".repeat(600)}\n    at ${prompt}`);
    },
    /^short/,
  ],
])("%s does not reach the log", ([, act, message]) => {
  const { err } = written(thrownBy(act));
  expect(err.message).toMatch(message);
  expect(err.stack).toContain("logger.test.ts");
  expect(JSON.stringify(err)).not.toContain("diary");
});

test("an error's message alone does not show it either", () => {
  const { message } = thrownBy(() => JSON.parse(prompt)) as Error;
  expect(message).toContain("my diary");
  expect(written(message).err).not.toContain("diary");
});

test("an uncaught error ends the process with one log line and no other output", async () => {
  const script = `
    import { createProcessLogger } from "./shared/platform/logger.ts";
    createProcessLogger("test", "info");
    Promise.reject(Object.assign(new Error("refused"), { command: { args: [${JSON.stringify(prompt)}] } }));`;
  const run = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  const ended = (await run.catch((error: unknown) => error)) as { code: number; stdout: string; stderr: string };
  expect(ended).toMatchObject({ code: 1, stderr: "" });
  expect(JSON.parse(ended.stdout)).toMatchObject({ msg: "uncaught exception", err: { message: "refused" } });
  expect(ended.stdout).not.toContain("diary");
});

test.each([
  ["an exit", "process.exit(1)", "line 999"],
  ["an uncaught error", 'throw new Error("refused")', "uncaught exception"],
  ["a fatal line and an abort", 'log.fatal("fatal"); process.abort()', "fatal"],
])("no line before %s is lost, even while earlier ones are being written", async (_, end, last) => {
  const script = `
    import { createProcessLogger } from "./shared/platform/logger.ts";
    const log = createProcessLogger("test", "info");
    const write = (from, to) => { for (let n = from; n < to; n++) log.info("line " + n); };
    write(0, 500);
    setImmediate(() => { write(500, 1000); ${end}; });`;
  const run = promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script]);
  const { stdout } = (await run.catch((error: unknown) => error)) as { stdout: string };
  const messages = stdout.split("\n").flatMap((line) => (line ? [(JSON.parse(line) as { msg: string }).msg] : []));
  expect(messages.slice(0, 1000)).toEqual(Array.from({ length: 1000 }, (_, n) => `line ${n}`));
  expect(messages.at(-1)).toBe(last);
});
