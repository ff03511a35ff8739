import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { faultsOf, figure, moneyShown, signedIn } from "../support/browser-screens.ts";
import { drawing, images, providerImages } from "../support/generation-setup.ts";
import { startMockOpenai } from "../support/mock-openai.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { eventually, startService } from "../support/service.ts";
import { entriesOf, gate, never, providerModel } from "../support/service-setup.ts";

const browser = browserOfFile();
/** One worker that generates one image at a time. */
const shared = ofFile(
  async (onEnd) => {
    const provider = await startMockOpenai();
    const env = { OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: provider.url, WORKER_CONCURRENCY_IMAGE: "1" };
    const stores = await testStores();
    const service = await startService(stores, { env, onEnd });
    onEnd(() => provider.close());
    return { service, provider, storage: new URL(stores.S3_ENDPOINT).origin };
  },
  ({ provider }) => provider.reset(),
);

const conversation = (page: Page) => page.getByRole("list", { name: "Conversation" }).getByRole("listitem");

async function say(page: Page, text: string): Promise<void> {
  await page.getByLabel("Message").fill(text);
  await page.keyboard.press("Enter");
}

test("an answer appears piece by piece, and the balance, the page and the ledger agree about its cost", async () => {
  const { service, provider } = shared;
  const { page, customer } = await signedIn(browser, service);
  await page.goto(`/dashboard/playground?model=${providerModel}`);
  const rest = gate();
  provider.respond({ text: "One, two, three, four.", beforeEvent: { 3: rest.opened } });
  await say(page, "Count");
  await expect.poll(() => conversation(page).allTextContents()).toEqual(["YouCount", "ModelOne, two,"]);
  expect(await provider.request(0)).toMatchObject({ eventsSent: 3, aborted: false });
  await page.getByRole("button", { name: "Stop" }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  rest.open();
  await expect.poll(() => conversation(page).last().textContent()).toBe("ModelOne, two, three, four.");

  const [entry] = await entriesOf(service, customer);
  await page.getByText(`Cost ${moneyShown(entry?.amount_usd ?? "")}`, { exact: true }).waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  const available = moneyShown(await customer.available());
  await expect.poll(() => figure(page, "Available").textContent()).toBe(available);
});

test("Stop in mid-answer keeps the received text, closes the provider's connection, and shows the ledger's charge", async () => {
  const { service, provider } = shared;
  const { page, customer } = await signedIn(browser, service, {
    expectedErrors: /status of 404 .*\/v1\/requests\/req_/,
  });
  await page.goto(`/dashboard/playground?model=${providerModel}`);
  const partial = { text: "One, two, three, four.", beforeEvent: { 3: never } };
  provider.respond(partial, partial);
  const stopAfterTwo = async (index: number) => {
    const answer = async () => (await conversation(page).allTextContents()).slice(2 * index + 1);
    await expect.poll(answer).toEqual(["ModelOne, two,"]);
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("Stopped", { exact: true }).waitFor();
    const request = await provider.request(index);
    await request.closed;
    expect(request.aborted).toBe(true);
    expect(await answer()).toEqual(["ModelOne, two,"]);
  };
  await say(page, "Count");
  await stopAfterTwo(0);
  await say(page, "Go on");
  await stopAfterTwo(1);
  const said = { role: "assistant", content: "One, two," };
  const messages = [{ role: "user", content: "Count" }, said, { role: "user", content: "Go on" }];
  expect((await provider.request(1)).body["messages"]).toEqual(messages);

  // Open the call immediately, when its cost may not be captured yet.
  await page.getByRole("link", { name: "Details of the call" }).click();
  const entries = await entriesOf(service, customer);
  const shown = figure(page, "Cost");
  // The page retries for two seconds; on a busy machine the capture may take longer.
  const again = page.getByRole("button", { name: "Try again" });
  await shown.or(again).first().waitFor();
  if (await again.isVisible()) await again.click();
  await shown.waitFor();
  expect(entries.map(({ request }) => request.status)).toEqual(["cancelled", "cancelled"]);
  const second = entries.find(({ id }) => page.url().endsWith(id));
  expect(Number(second?.amount_usd)).toBeLessThan(0);
  expect(await shown.textContent()).toBe(moneyShown(second?.amount_usd ?? ""));
});

test("an image shows its place in the queue and its duration, and then its cost in the ledger", async () => {
  const { service, provider, storage } = shared;
  const { page, customer } = await signedIn(browser, service, { origins: [storage] });
  await page.goto("/dashboard/playground?model=local/image");
  const [first, second] = [gate(), gate()];
  provider.respond({ beforeHeaders: first.opened }, { beforeHeaders: second.opened });
  const draw = () => customer.post(images, drawing("a lighthouse", { model: providerImages, size: "1024x1024" }));
  const running = () =>
    page.evaluate<unknown[]>(
      "fetch('/dashboard/api/running').then((answer) => answer.json()).then(({ data }) => data)",
    );
  const calls = [draw()];
  await provider.request(0);
  calls.push(draw());
  await eventually(async () => (await running()).length === 2);

  await page.getByLabel(/prompt/i).fill("A sunrise");
  await page.getByRole("button", { name: "Generate" }).click();
  await page.getByText("Number 2 in the queue").waitFor();
  await page.getByText(/^[1-9]\d* s so far$/).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  first.open();
  await page.getByText("Next in the queue").waitFor();
  second.open();
  const preview = page.getByRole("img", { name: /^Preview of/ });
  await expect
    .poll(() => preview.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth))
    .toBeGreaterThan(0);
  for (const call of calls) expect((await call).status).toBe(200);

  const drawn = (await entriesOf(service, customer)).filter(({ request }) => request.model === "local/image");
  expect(drawn.map(({ request }) => request.status)).toEqual(["succeeded"]);
  await page.getByText(`Cost ${moneyShown(drawn[0]?.amount_usd ?? "")}`, { exact: true }).waitFor();
  await page.getByText(/^Deleted in 23 h 5\d min$/).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole("link", { name: "Details of the call" }).click();
  await page
    .getByRole("row", { name: /^Charged/ })
    .getByText(moneyShown(drawn[0]?.amount_usd ?? ""))
    .waitFor();
});
