import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, figure, signedIn } from "../support/browser-screens.ts";
import type { Customer } from "../support/service.ts";

const browser = browserOfFile();
const shared = dashboardOfFile({ NATIVE_FORMATS_ANY_MODEL: "true" });

const chat = "/v1/chat/completions";
const line = (custom_id: string, content: string, url = chat) =>
  JSON.stringify({
    custom_id,
    method: "POST",
    url,
    body: { model: "local/chat", messages: [{ role: "user", content }] },
  });

/** Chooses a file with these lines on the page of batches. */
async function choose(page: Page, lines: readonly string[]): Promise<void> {
  await page.goto("/dashboard/batches");
  const buffer = Buffer.from(lines.join("\r\n"));
  await page.getByLabel("Choose a file").setInputFiles({ name: "calls.jsonl", mimeType: "text/plain", buffer });
}

/** Confirms the dialog, and waits for the page of another batch. */
async function create(page: Page): Promise<void> {
  const before = page.url();
  await page.getByRole("dialog").getByRole("button", { name: "Create the batch" }).click();
  await page.waitForURL((url) => url.href !== before);
  await page.getByRole("heading", { name: "Batch", level: 1 }).waitFor();
}

async function download(page: Page, name: string): Promise<string[]> {
  const saved = page.waitForEvent("download");
  await page.getByRole("link", { name, exact: true }).first().click();
  const text = await readFile(await (await saved).path(), "utf8");
  return text.trimEnd().split(/\r?\n/);
}

const customIds = (lines: readonly string[]) =>
  lines.map((each) => (JSON.parse(each) as { custom_id: string }).custom_id).toSorted();

test("a chosen file runs to its results, and what failed is retried as a batch of its own", async () => {
  const { page, customer } = await signedIn(browser, shared.service);
  const lines = [line("a", "Hello"), line("bad", "error:400"), "", line("c", "Hello"), line("worse", "error:400")];
  await choose(page, lines);
  await create(page);
  await expect.poll(() => figure(page, "Status").textContent()).toBe("Completed");
  expect(await figure(page, "Progress").textContent()).toBe("4 of 4, 2 failed");
  const cost = await figure(page, "Cost so far").textContent();
  const [batch] = (await customer.openai.batches.list()).data;
  expect(batch).toMatchObject({ status: "completed", request_counts: { total: 4, completed: 2, failed: 2 } });
  expect(cost).toBe(`$${(batch as unknown as { x_cost_usd: string }).x_cost_usd}`);
  expect(customIds(await download(page, "Download the results"))).toEqual(["a", "c"]);
  expect(customIds(await download(page, "Download the errors"))).toEqual(["bad", "worse"]);
  expect(await faultsOf(page)).toEqual([]);

  await page.getByRole("button", { name: "Retry what failed" }).click();
  await page.getByRole("dialog").getByText("Retry 2 lines?").waitFor();
  await create(page);
  await page.getByText("2 of 2, 2 failed").waitFor();
  expect(await download(page, "Download")).toEqual([lines[1], lines[4]]);

  await page.getByRole("link", { name: "All batches" }).click();
  const rows = page.getByRole("table", { name: "Batches, newest first" }).locator("tbody tr");
  await expect.poll(() => rows.count()).toBe(2);
  expect(await rows.first().textContent()).toContain("2 of 2, 2 failed");
  expect(await faultsOf(page)).toEqual([]);
});

const message = (custom_id: string, content: string) => ({
  custom_id,
  params: { model: "local/chat", max_tokens: 20, messages: [{ role: "user", content }] },
});

/** Creates a batch of messages, as a program of the customer does. */
async function createMessages(customer: Customer, requests: readonly object[]): Promise<string> {
  const created = await customer.post("/v1/messages/batches", { requests });
  expect(created.status).toBe(200);
  return ((await created.json()) as { id: string }).id;
}

test("batches of messages are listed with the others, with their results, a retry of what failed, and their cancellation", async () => {
  const { page, customer } = await signedIn(browser, shared.service);
  const requests = [message("a", "Hello"), message("bad", "error:400"), message("c", "Hello")];
  const id = await createMessages(customer, requests);
  await choose(page, [line("a", "Hello")]);
  await create(page);
  await page.getByRole("link", { name: "All batches" }).click();
  const rows = page.getByRole("table", { name: "Batches, newest first" }).locator("tbody tr");
  await expect.poll(() => rows.nth(1).textContent()).toContain("3 of 3, 1 failed");
  expect(await rows.locator("td[data-header=Kind]").allTextContents()).toEqual(["Batch", "Message batch"]);

  await rows.nth(1).getByRole("link").click();
  await page.getByText(id).waitFor();
  await expect.poll(() => figure(page, "Status").textContent()).toBe("Completed");
  expect(customIds(await download(page, "Download the results"))).toEqual(["a", "bad", "c"]);
  expect(customIds(await download(page, "Download"))).toEqual(["a", "bad", "c"]);
  expect(await faultsOf(page)).toEqual([]);

  await page.getByRole("button", { name: "Retry what failed" }).click();
  await page.getByRole("dialog").getByText("Retry 1 line?").waitFor();
  await create(page);
  await page.getByText("1 of 1, 1 failed").waitFor();
  expect(page.url()).toMatch(/\/msgbatch_\w+$/);
  const [retried] = await download(page, "Download");
  expect(JSON.parse(retried ?? "")).toMatchObject({ custom_id: "bad", body: requests[1]?.params ?? {} });

  const slow = await createMessages(customer, [message("a", "Hello"), message("slow", "slow:600000")]);
  await page.goto(`/dashboard/batches/${slow}`);
  // Its own interface shows no count before its end.
  await page.getByText("1 of 2").waitFor();
  await page.getByRole("button", { name: "Cancel the batch" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
  await page.getByText("Cancelling", { exact: true }).waitFor();
});

test("a retry shows what it reads, stops with its dialog, and says what is missing or has broken off", async () => {
  const expectedErrors = /ERR_CONNECTION|Failed to load resource|status of 404/;
  const { page, customer } = await signedIn(browser, shared.service, { expectedErrors });
  await choose(page, [line("a", "Hello"), line("bad", "error:400")]);
  await create(page);
  await page.getByText("2 of 2, 1 failed").waitFor();
  const [batch] = (await customer.openai.batches.list()).data;
  const dialog = page.getByRole("dialog");
  const begin = () => dialog.getByRole("button", { name: "Create the batch" }).click();
  const open = () => page.getByRole("button", { name: "Retry what failed" }).click();
  const input = `**/v1/files/${batch?.input_file_id}/content`;

  const held = Promise.withResolvers<void>();
  await page.route(input, async (route) => {
    await held.promise;
    await route.abort().catch(() => undefined);
  });
  await open();
  await begin();
  await dialog.getByRole("progressbar", { name: "Reading the input" }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await open();
  await begin();
  held.resolve();
  await dialog.getByRole("alert").getByText("The service cannot be reached.").waitFor();
  await page.unroute(input);

  await customer.openai.files.delete(batch?.input_file_id ?? "");
  await begin();
  const gone = "The input file of this batch has expired or was deleted: its lines cannot be retried.";
  await dialog.getByRole("alert").getByText(gone).waitFor();
  expect((await customer.openai.batches.list()).data).toHaveLength(1);
});

test("a running batch shows its rate and the time left, and is cancelled", async () => {
  const { page } = await signedIn(browser, shared.service);
  await choose(page, [line("a", "Hello"), line("b", "slow:600000")]);
  await create(page);
  await page.getByText("1 of 2").waitFor();
  expect(await figure(page, "Status").textContent()).toBe("In progress");
  expect(await figure(page, "Rate").textContent()).toMatch(/^[\d.]+ lines?\/(s|min)about .+ left$/);
  await page.getByRole("button", { name: "Cancel the batch" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
  await page.getByText("Cancelling", { exact: true }).waitFor();
});

test("a file that is refused shows the lines with their errors, and the endpoint is preset and can be chosen", async () => {
  const { page } = await signedIn(browser, shared.service);
  const embeddings = "/v1/embeddings";
  await choose(page, [line("a", "Hello", embeddings), "not JSON", line("a", "Hello")]);
  const endpoint = page.getByRole("dialog").getByLabel("Endpoint");
  await expect.poll(() => endpoint.inputValue()).toBe(embeddings);
  await endpoint.selectOption(chat);
  await create(page);
  const rows = page.getByRole("table", { name: "Errors of the file by line" }).locator("tbody tr");
  await rows.first().waitFor();
  expect(await figure(page, "Status").textContent()).toBe("Failed");
  const shown = await Promise.all((await rows.all()).map((row) => row.locator("td").allTextContents()));
  expect(shown.map(([number, code]) => [number, code])).toEqual([
    ["1", "invalid_url"],
    ["2", "invalid_json_line"],
  ]);
  expect(await faultsOf(page)).toEqual([]);
});
