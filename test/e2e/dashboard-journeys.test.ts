import { expect, test } from "vitest";
import { browserOfFile } from "../support/browser.ts";
import { faultsOf } from "../support/browser-screens.ts";
import { mockError, startMockOpenai } from "../support/mock-openai.ts";
import { ofFile } from "../support/of-file.ts";
import { testStores } from "../support/servers.ts";
import { startService, testAdminToken } from "../support/service.ts";
import { asking } from "../support/service-setup.ts";

const browser = browserOfFile();
const shared = ofFile(
  async (onEnd) => {
    const openai = await startMockOpenai();
    onEnd(() => openai.close());
    const env = { OPENAI_API_KEY: "sk-operator", OPENAI_BASE_URL: openai.url };
    return { openai, service: await startService(await testStores(), { env, onEnd }) };
  },
  ({ openai }) => openai.reset(),
);

test("an operator sees on the overview that a key is refused, and one click later what the provider says and where it was called", async () => {
  const { service, openai } = shared;
  const customer = await service.account("5.00");
  openai.always(mockError(401, "Incorrect API key provided.", { code: "invalid_api_key" }));
  const call = customer.openai.chat.completions.create(asking("openai/gpt-4o-mini"));
  await expect(call).rejects.toMatchObject({ status: 502 });

  const { page } = await browser.open(service.baseUrl, { viewport: { width: 360, height: 800 }, colorScheme: "dark" });
  await page.goto("/dashboard/operator");
  await page.getByLabel("API key").fill(testAdminToken);
  await page.keyboard.press("Enter");
  const row = page.getByRole("table", { name: "Upstreams" }).getByRole("row", { name: /^openai / });
  await row.getByText("Key refused").waitFor();
  await row.getByText("Incorrect API key provided.").waitFor();
  expect(await faultsOf(page)).toEqual([]);
  // The call failed after it was accepted, and Requests lists it as that.
  await expect.poll(() => page.getByText("100.0 % of calls, as in Requests").count()).toBe(1);

  await expect.poll(() => row.textContent()).toMatch(/\d+ \(100\.0 %\)/);
  await row.getByRole("link", { name: "openai" }).click();
  await page.getByRole("heading", { name: "Catalog", level: 1 }).waitFor();
  const upstream = page.getByRole("table", { name: "Upstreams" }).getByRole("row", { name: /^openai / });
  await upstream.getByText("Key refused").waitFor();
  await upstream.getByText("Incorrect API key provided.").waitFor();
  await upstream.getByText(openai.url).waitFor();
  expect(await faultsOf(page)).toEqual([]);
  await page.getByRole("button", { name: "Models", exact: true }).click();
  await page.getByLabel("Upstream").selectOption("openai");
  await page.getByLabel("State").selectOption("listed");
  await page.getByText("No model fits").waitFor();
  expect(await faultsOf(page)).toEqual([]);
});
