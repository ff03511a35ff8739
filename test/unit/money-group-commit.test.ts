import { expect, onTestFinished, test, vi } from "vitest";
import { groupCommit, type Pacing } from "../../shared/platform/concurrency/group-commit.ts";

/** A store whose writes end when the test says so. */
function createStore(limit = 100, pacing?: Pacing) {
  const writes: {
    key: string;
    group: readonly string[];
    end(outcomes?: (string | Error)[]): void;
    fail(error: Error): void;
  }[] = [];
  const add = groupCommit<string, string>({
    limit,
    ...(pacing && { pacing }),
    write: (key, group) =>
      new Promise((resolve, reject) =>
        writes.push({
          key,
          group,
          end: (outcomes) => resolve(outcomes ?? group.map((item) => `${item} stands`)),
          fail: reject,
        }),
      ),
  });
  const written = async (count: number) => {
    await expect.poll(() => writes.length, { interval: 1 }).toBe(count);
    const last = writes[count - 1];
    if (!last) throw new Error("no write");
    return last;
  };
  return { add, writes, written };
}

test("items of one turn are written together, and items that arrive in the meantime go next, in order", async () => {
  const { add, writes, written } = createStore();
  const first = [add("a", "1", "1"), add("a", "2", "2")];
  const one = await written(1);
  const second = [add("a", "3", "3"), add("a", "4", "4"), add("a", "5", "5")];
  await new Promise(setImmediate);
  expect(writes).toHaveLength(1);
  one.end();
  expect(await Promise.all(first)).toEqual(["1 stands", "2 stands"]);
  (await written(2)).end();
  expect(await Promise.all(second)).toEqual(["3 stands", "4 stands", "5 stands"]);
  expect(writes.map(({ group }) => group)).toEqual([
    ["1", "2"],
    ["3", "4", "5"],
  ]);
});

test("a group has a limit, and items keep their order", async () => {
  const { add, writes, written } = createStore(2);
  const all = ["1", "2", "3", "4", "5"].map((id) => add("a", id, id));
  for (const count of [1, 2, 3]) (await written(count)).end();
  await Promise.all(all);
  expect(writes.map(({ group }) => group)).toEqual([["1", "2"], ["3", "4"], ["5"]]);
});

test("equal ids that wait together are one item, later ones are another", async () => {
  const { add, writes, written } = createStore();
  const both = [add("a", "1", "first"), add("a", "1", "second")];
  const one = await written(1);
  const again = add("a", "1", "third");
  one.end();
  expect(await Promise.all(both)).toEqual(["first stands", "first stands"]);
  (await written(2)).end();
  expect(await again).toBe("third stands");
  expect(writes.map(({ group }) => group)).toEqual([["first"], ["third"]]);
});

test("keys do not wait for one another, and a failure concerns one key", async () => {
  const { add, written, writes } = createStore();
  const slow = add("a", "1", "1");
  await written(1);
  const broken = [add("b", "1", "1"), add("b", "2", "2")];
  const two = await written(2);
  const next = add("b", "3", "3");
  two.fail(new Error("lost"));
  expect(await Promise.allSettled(broken)).toMatchObject([
    { reason: { message: "lost" } },
    { reason: { message: "lost" } },
  ]);
  (await written(3)).end();
  expect(await next).toBe("3 stands");
  writes[0]?.end();
  expect(await slow).toBe("1 stands");
});

test("an outcome that is an error rejects only its item", async () => {
  const { add, written } = createStore();
  const both = [add("a", "1", "1"), add("a", "2", "2")];
  (await written(1)).end([new Error("refused"), "stands"]);
  expect(await Promise.allSettled(both)).toMatchObject([{ reason: { message: "refused" } }, { value: "stands" }]);
});

test("paced: small writes run concurrently, after a large one the next runs alone, and later", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { add, writes } = createStore(100, { many: 3, spacingMs: 4, writers: 2 });
  const turns = async () => {
    for (let n = 0; n < 5; n++) await new Promise(setImmediate);
  };
  const groups = () => writes.map(({ group }) => group.join(" "));
  const addAll = async (...ids: string[]) => {
    for (const id of ids) void add("a", id, id);
    await turns();
  };
  const end = async (write: number) => {
    writes[write]?.end();
    await turns();
  };
  await addAll("1");
  await addAll("2");
  // Two are in progress.
  await addAll("3", "4", "5");
  expect(groups()).toEqual(["1", "2"]);
  await end(1);
  expect(groups()).toEqual(["1", "2", "3 4 5"]);
  // The first writer is free, and has no work: a large write runs alone.
  await end(0);
  await addAll("6");
  await end(2);
  expect(groups()).toEqual(["1", "2", "3 4 5"]);
  await addAll("7");
  vi.advanceTimersByTime(4);
  await turns();
  expect(groups()).toEqual(["1", "2", "3 4 5", "6 7"]);
  await end(3);
  await addAll("8");
  expect(groups()).toEqual(["1", "2", "3 4 5", "6 7", "8"]);
});
