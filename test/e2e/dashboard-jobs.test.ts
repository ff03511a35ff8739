import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, figure, signedIn } from "../support/browser-screens.ts";
import { testAdminToken } from "../support/service.ts";

const browser = browserOfFile();
// The second film waits for the first.
const shared = dashboardOfFile({ WORKER_CONCURRENCY_MEDIA: "1" });

test("a call in the background is a job: it is followed to its result, or cancelled while it waits", async () => {
  const { service, storage } = shared;
  const { page, customer } = await signedIn(browser, service, { origins: [storage] });
  const submit = async (model: string, prompt: string) => {
    await page.goto(`/dashboard/playground?model=${model}`);
    await page.getByLabel("Prompt").fill(prompt);
    await page.getByRole("button", { name: /^Generate/ }).click();
    await page.getByRole("link", { name: "Details of the job" }).click();
    await page.getByRole("heading", { name: "Job", level: 1 }).waitFor();
    return new URL(page.url()).pathname;
  };
  await submit("local/video", "slow:600000");
  await page.getByText("In progress", { exact: true }).waitFor();
  const waiting = await submit("local/video", "A lighthouse");
  expect(await figure(page, "Place in the queue").textContent()).toBe("Next");

  // An operator sees whose jobs wait.
  const { page: operator } = await browser.open(service.baseUrl);
  operator.setDefaultTimeout(60_000);
  await operator.goto("/dashboard/operator/jobs");
  await operator.getByLabel("API key").fill(testAdminToken);
  await operator.keyboard.press("Enter");
  const row = operator.getByRole("table", { name: "Jobs by pool and account" }).getByRole("row").nth(1);
  // The name comes after the id.
  const cells = async () => (await row.locator("td").allTextContents()).slice(0, 3);
  await expect.poll(cells).toEqual(["test", "media", "1"]);
  await row.locator(`a[title="${customer.id}"]`).waitFor();
  expect(await faultsOf(operator)).toEqual([]);

  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Stop it" }).click();
  await page.getByText("The job was cancelled.").waitFor();
  expect(await figure(page, "Status").textContent()).toBe("Cancelled");
  await operator.getByRole("main").getByRole("link", { name: "Requests" }).click();
  await operator.getByRole("heading", { name: "Requests", level: 1 }).waitFor();

  await submit("local/image", "A lighthouse");
  await page.getByRole("img", { name: /^Preview of file_/ }).waitFor();
  expect(await figure(page, "Status").textContent()).toBe("Completed");
  await page.getByRole("link", { name: "Attempts and cost" }).click();
  await page.getByRole("heading", { name: "Request", level: 1 }).waitFor();

  await page.goto("/dashboard/jobs");
  const rows = page.getByRole("table", { name: "Jobs, newest first" }).locator("tbody tr");
  await expect.poll(() => rows.count()).toBe(3);
  await page.getByLabel("Status").selectOption("cancelled");
  await expect.poll(() => rows.count()).toBe(1);
  await page.getByLabel("Endpoint").selectOption("/v1/images/generations");
  await page.getByText("No job matches").waitFor();
  expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
    status: "cancelled",
    endpoint: "/v1/images/generations",
  });
  await page.reload();
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await expect.poll(() => rows.count()).toBe(3);

  await page.goto(waiting);
  await page.getByRole("button", { name: "Delete the job" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await expect.poll(() => rows.count()).toBe(2);
});
