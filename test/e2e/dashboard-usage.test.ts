import { readFile } from "node:fs/promises";
import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { sumUsd, usdText } from "../../dashboard/src/lib/usd.ts";
import { type Capture, createMoney } from "../../shared/money/index.ts";
import { dayMs, systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { createCacheUsage } from "../../shared/response-cache/index.ts";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, figure, pressByKeyboard, signedIn } from "../support/browser-screens.ts";
import { captureOf, held, holdOf } from "../support/money-setup.ts";
import { asking, localModel } from "../support/service-setup.ts";

const browser = browserOfFile();
const shared = dashboardOfFile();
const hourMs = 3_600_000;

/** A call that ended so long ago. Older ones come first, because the sums of past days are final. */
async function call(account: string, agoMs: number, costNanoUsd: bigint, more: Partial<Capture>): Promise<void> {
  const clock = { ...systemClock, now: () => Date.now() - agoMs };
  const money = createMoney({ mongo: shared.mongo, clock, log: createLogger("test", "silent") });
  await money.charge(captureOf(await held(money, holdOf(account, 90_000_000n)), costNanoUsd, more));
}

/** The texts of a table's rows, each cell by its lines: the number, that of the period before, and the change. */
async function rowsOf(table: Locator): Promise<string[][][]> {
  const rows: string[][][] = [];
  for (const row of await table.locator("tbody tr").all())
    rows.push((await row.locator("td").allInnerTexts()).map((text) => text.split("\n")));
  return rows;
}

const cellsOf = (line: string) => line.split(",").map((cell) => cell.replaceAll('"', ""));

test("filters of usage survive a reload, and its CSV has the numbers of its table", async () => {
  const { service, money } = shared;
  const { page, customer, own } = await signedIn(browser, service);
  await page.getByRole("link", { name: "Usage" }).click();
  await page.getByText("No calls in this period").waitFor();
  const [one, other] = ["vendor/model-a", "vendor/model-b"];
  const key = own.id;
  const labels = { tags: ["team-a", "feature=search"], sessionId: "conversation", user: "someone" };
  await call(customer.id, 40 * dayMs, 2_000_000n, { key, model: one, firstTokenMs: 400 });
  await call(customer.id, 30 * hourMs, 30_000_000n, {
    key,
    model: one,
    usage: { input: 4_000, output: 100 },
    ...labels,
  });
  await call(customer.id, hourMs, 10_000_000n, {
    key,
    model: one,
    usage: { input: 900, cached_input: 600, output: 7 },
  });
  await call(customer.id, 0, 5_000_000n, { key: "key_of_before", model: one, firstTokenMs: 800 });
  await call(customer.id, 0, 0n, { key, model: other, status: "failed", usage: {}, endpoint: "/v1/messages" });
  await money.sumUsage();

  await page.reload();
  await expect.poll(() => figure(page, "Cost").textContent()).toBe("$0.045");
  expect(await figure(page, "Calls").textContent()).toBe("4");
  expect(await figure(page, "Errors").textContent()).toBe("1");
  await page.getByText("Before: $0.002, +2,150%").waitFor();
  const byModel = page.getByRole("table", { name: "Usage by model" });
  expect((await rowsOf(byModel)).map(([name, cost]) => [name?.[0], ...(cost ?? [])])).toEqual([
    [one, "$0.045", "$0.002", "+2,150%"],
    [other, "$0.00", "$0.00"],
    ["Total", "$0.045", "$0.002", "+2,150%"],
  ]);

  await page.getByLabel("Period").selectOption("24h");
  await page.getByLabel("Group by").selectOption("key");
  await page.getByLabel("Model").selectOption(one);
  await pressByKeyboard(page, page.getByRole("button", { name: "Tokens" }));
  const byKey = page.getByRole("table", { name: "Usage by key" });
  const shown = async () => {
    await page.getByRole("heading", { name: "Tokens by hour" }).waitFor();
    await byKey.getByText(/^own \(live_/).waitFor();
    return rowsOf(byKey);
  };
  const rows = await shown();
  expect(rows.map((row) => row.slice(0, 3))).toEqual([
    [[expect.stringMatching(/^own \(live_/)], ["$0.01", "$0.03", "-67%"], ["1", "1", "0%"]],
    [["key_of_before"], ["$0.005", "$0.00"], ["1", "0"]],
    [["Total"], ["$0.015", "$0.03", "-50%"], ["2", "1", "+100%"]],
  ]);
  const chosen = { range: "24h", by: "key", model: one, show: "tokens" };
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual(chosen);
  await page.reload();
  expect(await shown()).toEqual(rows);
  for (const [label, value] of [
    ["Period", "24h"],
    ["Group by", "key"],
    ["Model", one],
  ] as const)
    expect(await page.getByLabel(label).inputValue()).toBe(value);

  const downloads = page.waitForEvent("download");
  await pressByKeyboard(page, page.getByRole("button", { name: "Download CSV" }));
  const file = await downloads;
  expect(file.suggestedFilename()).toMatch(/^usage-by-key-\d{4}-\d\d-\d\dT\d\d-\d{4}-\d\d-\d\dT\d\d\.csv$/);
  const [header = "", ...lines] = (await readFile(await file.path(), "utf8")).trimEnd().split("\r\n");
  const names = cellsOf(header);
  const columns = ["cost_usd", "calls", "failed", "input_tokens", "cached_tokens", "output_tokens", "saved_usd"];
  const times = ["first_token_p50_ms", "first_token_p95_ms"];
  expect(names).toEqual(["Key", ...[...columns, ...times].flatMap((name) => [name, `previous_${name}`])]);
  // Numbers as the file has them: without a currency, thousands, or units of time.
  const plain = (text = "") => {
    const [, amount = "", unit] = /^\$?([\d,.]+)( s| ms)?$/.exec(text) ?? [];
    return amount && Number(amount.replaceAll(",", "")) * (unit === " s" ? 1_000 : 1);
  };
  const numbers = lines.map((line) => cellsOf(line).map((cell, at) => (at === 0 || cell === "" ? cell : Number(cell))));
  // The page rounds times of more than a second.
  const isTime = (at: number) => times.some((name) => names[at]?.endsWith(name));
  const rounded = (value: number | string, at: number) =>
    typeof value === "number" && isTime(at) && value >= 1_000 ? Math.round(value / 10) * 10 : value;
  const cells = rows.map(([name, ...others]) => [
    name?.[0] ?? "",
    ...others.flatMap(([now, before]) => [plain(now), plain(before)]),
  ]);
  expect(numbers.map((line) => line.map(rounded))).toEqual(cells);

  await page.getByLabel("Model").selectOption(other);
  await page.getByLabel("Key").selectOption(own.id);
  await page.getByLabel("Endpoint").selectOption("/v1/chat/completions");
  await page.getByText("No calls in this period").waitFor();
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await byModel.waitFor();
  expect(new URL(page.url()).search).toBe("");

  await page.getByLabel("Group by").selectOption("tag");
  const byTag = page.getByRole("table", { name: "Usage by tag" });
  await byTag.waitFor();
  expect((await rowsOf(byTag)).map(([name, cost]) => [name?.[0], cost?.[0]])).toEqual([
    ["feature=search", "$0.03"],
    ["team-a", "$0.03"],
    ["No tag", "$0.015"],
    ["Total", "$0.045"],
  ]);
  await page.goto("/dashboard/usage?by=session&tag=team-a");
  const bySession = page.getByRole("table", { name: "Usage by session" });
  await expect
    .poll(async () => (await rowsOf(bySession)).map(([name, cost]) => [name?.[0], cost?.[0]]))
    .toEqual([
      ["conversation", "$0.03"],
      ["Total", "$0.03"],
    ]);
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ by: "session", tag: "team-a" });

  // The requests list has the same labels, its filters and its file.
  await page.goto("/dashboard/requests?user=someone");
  const listed = page.getByRole("table", { name: "Requests, newest first" }).locator("tbody tr");
  await expect.poll(() => listed.count()).toBe(1);
  const labeled = page.waitForEvent("download");
  await page.getByRole("button", { name: "Download CSV" }).click();
  const [titles = "", saved = ""] = (await readFile(await (await labeled).path(), "utf8")).split("\r\n");
  expect(titles).toContain(',"tags","session_id","user",');
  expect(saved).toContain('"team-a,feature=search","conversation","someone"');
  await listed.getByRole("link").click();
  await page.getByRole("link", { name: "feature=search" }).click();
  await expect.poll(() => listed.count()).toBe(1);
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ tag: "feature=search" });

  // The table is of the quantity that was chosen for the chart.
  await page.goto("/dashboard/usage?show=calls");
  await page.getByRole("button", { name: "Table", exact: true }).click();
  await page.getByRole("table", { name: "Calls by day" }).waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({ show: "calls", as: "table" });

  // An address that nobody chose shows the last 30 days, or the service's reason.
  await page.goto("/dashboard/usage?range=custom&from=never&to=2999&interval=week&by=x&show=y");
  await byModel.waitFor();

  await page.getByRole("link", { name: "Overview" }).click();
  // Depending on the time of day, the last hour is yesterday's or the last month's.
  for (const name of ["Spend today", "Spend this month", "Last month to the same day"])
    await expect.poll(() => figure(page, name).textContent()).toMatch(/^\$0\.0/);
});

test("the response cache's hits and savings are shown for the period, and it is cleared after a question", async () => {
  const { service, mongo } = shared;
  const { page, customer, own } = await signedIn(browser, service);
  const clock = { ...systemClock, now: () => Date.now() - 10 * dayMs };
  const usage = createCacheUsage({ mongo, clock, log: createLogger("test", "silent") });
  for (const coalesced of [{}, { coalesced: true }] as const)
    usage.note({ account: customer.id, key: own.id, outcome: "hit", ...coalesced, savedNanoUsd: 1_500_000_000n });
  await usage.stop();
  const call = async () => {
    const response = await customer.post("/v1/chat/completions", asking(localModel), {
      headers: { "x-xm-cache": "true" },
    });
    await response.text();
    return [response.headers.get("x-xm-cache"), response.headers.get("x-xm-cost-usd")];
  };
  const [, cost = ""] = await call();
  expect(await call()).toEqual(["hit", "0.00"]);

  const figures = ["Hit rate", "Hits", "Saved by the response cache"];
  const shown = async (period: string) => {
    await page.goto(`/dashboard/usage?range=${period}`);
    return Promise.all(figures.map((name) => figure(page, name).textContent()));
  };
  await expect.poll(() => shown("7d")).toEqual(["50%", "1", `$${cost}`]);
  expect(await shown("30d")).toEqual(["75%", "3", usdText(sumUsd(["3", cost ?? ""]))]);
  await page.getByText("1 of them waited for an equal call").waitFor();

  await pressByKeyboard(page, page.getByRole("button", { name: "Clear cache" }));
  await page.getByRole("dialog").waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await pressByKeyboard(page, page.getByRole("button", { name: "Clear the cache" }));
  await page.getByText("Cleared the response cache").waitFor();
  expect(await call()).toEqual(["miss", cost]);
  expect(await faultsOf(page)).toEqual([]);

  await page.route(/\/v1\/cache\?/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...((await response.json()) as object), available: false } });
  });
  await page.reload();
  await page.getByText("This service has no response cache").waitFor();
  expect(await page.getByRole("button", { name: "Clear cache" }).count()).toBe(0);
});
