import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, signedIn } from "../support/browser-screens.ts";
import { testAdminToken } from "../support/service.ts";
import { asking, localModel } from "../support/service-setup.ts";
import { startReceiver, status, verified, webhookEnvironment } from "../support/webhook-receiver.ts";

const browser = browserOfFile();
const shared = dashboardOfFile(await webhookEnvironment());

test.each([
  [360, "dark"],
  [1_440, "light"],
] as const)("at %i px, %s, an endpoint is made, tested, and gets its lost events again", async (width, colorScheme) => {
  const { service } = shared;
  const receiver = await startReceiver();
  const look = { viewport: { width, height: 900 }, colorScheme, expectedErrors: /status of 400 .*\/endpoints$/ };
  const { page, customer } = await signedIn(browser, service, look);
  const fits = async (what: string) => expect([what, await faultsOf(page)]).toEqual([what, []]);
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const inDialog = (name: string) => page.getByRole("dialog").getByRole("button", { name });
  await page.goto("/dashboard/webhooks");
  await page.getByText("No deliveries yet").waitFor();
  await fits("empty");

  await button("New endpoint").click();
  await page.getByLabel("URL").fill("https://10.0.0.1/hook");
  await inDialog("Create endpoint").click();
  await page.getByText("url: the address").waitFor();
  // By its field only, which has the focus.
  expect(await page.getByText("url: the address").count()).toBe(1);
  expect(await page.locator(":focus").getAttribute("type")).toBe("url");
  await page.getByLabel("URL").fill(`${receiver.url}/hook`);
  await page.getByLabel("Name").fill("Orders");
  await page.getByLabel("Headers").fill("X-Team: a:b\n");
  await fits("new endpoint");
  await inDialog("Create endpoint").click();
  const shown = page.getByRole("dialog", { name: "Copy the secret now" });
  const secret = /whsec_[A-Za-z0-9+/=]{44}/.exec((await shown.textContent()) ?? "")?.[0] ?? "";
  await inDialog("I have it").click();
  expect(await page.content()).not.toContain(secret);

  await button("Send a test").click();
  await page.getByRole("heading", { name: "Delivery", level: 1 }).waitFor();
  await page.getByText("Delivered", { exact: true }).waitFor();
  const sent = await receiver.webhook(0);
  expect(await verified(sent, secret)).toMatchObject({ type: "webhook.test" });
  expect(sent.headers["x-team"]).toBe("a:b");

  receiver.answerAlways(status(500));
  const headers = { prefer: "respond-async" };
  await customer.post("/v1/chat/completions", asking(localModel), { headers });
  await page.getByRole("link", { name: "All webhooks" }).click();
  await page.getByLabel("Event").selectOption("job.completed");
  const rows = page.getByRole("table", { name: "Deliveries, newest first" }).locator("tbody tr");
  await expect.poll(() => rows.getByText("retrying").count()).toBe(1);
  await fits("webhooks");

  const { page: operator } = await browser.open(service.baseUrl, look);
  operator.setDefaultTimeout(60_000);
  await operator.goto("/dashboard/operator/webhooks");
  await operator.getByLabel("API key").fill(testAdminToken);
  await operator.keyboard.press("Enter");
  await operator.locator(`a[title="${customer.id}"]`).waitFor();
  expect(await faultsOf(operator)).toEqual([]);

  // A disabled endpoint skips what it would have got, until it is recovered.
  await button("Disable").click();
  await expect.poll(() => rows.getByText("skipped").count()).toBe(1);
  receiver.answerAlways(status(204));
  await button("Enable").click();
  await button("Send lost events again").click();
  await fits("recover");
  await inDialog("Send them").click();
  await expect.poll(() => rows.getByText("delivered").count()).toBe(1);

  await rows.getByRole("link").click();
  const attempts = page.getByRole("table", { name: /^Attempts/ }).locator("tbody tr");
  await attempts.first().waitFor();
  const before = await attempts.count();
  await button("Send it again").click();
  await expect.poll(() => attempts.count()).toBe(before + 1);
  await fits("delivery");
  const copies = receiver.received.filter(({ headers: { "x-xm-event": type } }) => type === "job.completed");
  expect(new Set(copies.map(({ id }) => id)).size).toBe(1);

  await page.goto("/dashboard/webhooks");
  await button("Replace the secret").click();
  await inDialog("Create new secret").click();
  expect(await shown.textContent()).not.toContain(secret);
  await inDialog("I have it").click();
  await button("Edit").click();
  await page.getByLabel("Name").fill("Renamed");
  await fits("edit");
  await inDialog("Save").click();
  await page.getByRole("heading", { name: "Renamed" }).waitFor();
  await button("Delete").click();
  await inDialog("Delete the endpoint").click();
  await page.getByText("No endpoints yet").waitFor();
});
