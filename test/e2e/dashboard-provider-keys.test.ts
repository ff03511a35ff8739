import { afterAll, expect, test } from "vitest";
import type { KeyBody } from "../support/account-caller.ts";
import { browserOfFile } from "../support/browser.ts";
import { dashboardOfFile, faultsOf, signedIn } from "../support/browser-screens.ts";
import { temporaryJson } from "../support/end-of-file.ts";
import { mockError, startMockOpenai } from "../support/mock-openai.ts";
import { postWith } from "../support/service.ts";
import { asking, providerModel } from "../support/service-setup.ts";
import { webhookEnvironment } from "../support/webhook-receiver.ts";

/** Every credential of the test contains it. */
const secret = "0123456789012345";
const [good, next, bad] = [`sk-own-${secret}-good`, `sk-own-${secret}-next`, `sk-own-${secret}-evil`] as const;

const provider = await startMockOpenai();
afterAll(() => provider.close());
const browser = browserOfFile();
const shared = dashboardOfFile({
  ...(await webhookEnvironment()),
  OPENAI_BASE_URL: provider.url,
  CATALOG_OVERLAY: temporaryJson("overlay", {
    upstreams: {
      cloud: {
        provider: "bedrock",
        base_url: `${provider.url}/{region}`,
        key_env: "CLOUD_API_KEY",
        region: "eu-central-1",
      },
    },
  }),
});

test.each([
  [360, "dark"],
  [1_440, "light"],
] as const)(
  "at %i px, %s, a provider key is checked, saved, tested, replaced and deleted",
  async (width, colorScheme) => {
    const { service } = shared;
    let accepted: string = good;
    provider.always(({ path, headers }) => {
      if (path.includes("eu-west-1")) return { body: { data: [] } };
      if (headers.authorization !== `Bearer ${accepted}`) return mockError(401, "Unknown key.");
      return path === "/v1/models" ? { body: { data: [] } } : {};
    });
    const look = { viewport: { width, height: 900 }, colorScheme, expectedErrors: /status of 400 .*\/provider-keys/ };
    const { page, own } = await signedIn(browser, service, look);
    const fits = async (what: string) => expect([what, await faultsOf(page)]).toEqual([what, []]);
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    const inDialog = (name: string) => page.getByRole("dialog").getByRole("button", { name });
    const stored = async () => {
      const response = await fetch(`${service.baseUrl}/v1/provider-keys`, {
        headers: { authorization: `Bearer ${own.key}` },
      });
      return ((await response.json()) as KeyBody).data;
    };
    /** The browser has nothing of a credential. */
    const isForgotten = async () => {
      const storage = await page.evaluate<string>("JSON.stringify([localStorage, sessionStorage])");
      expect(storage + (await page.content())).not.toContain(secret);
      expect(await page.locator("input[type=password], textarea").count()).toBe(0);
    };
    await page.goto("/dashboard/provider-keys");
    await page.getByText("No provider keys yet").waitFor();
    await fits("empty");

    await button("New provider key").click();
    await page.getByLabel("Provider", { exact: true }).selectOption("openai");
    expect(await page.getByLabel("API key").getAttribute("type")).toBe("password");
    await page.getByLabel("API key").fill(bad);
    await inDialog("Check and save").click();
    const refusal = page.getByText("The provider does not accept the credential: status 401: Unknown key.");
    await refusal.waitFor();
    expect([await refusal.count(), await page.locator(":focus").getAttribute("type")]).toEqual([1, "password"]);
    expect(await stored()).toEqual([]);
    await page.getByLabel("API key").fill(good);
    await page.getByLabel("Name").fill("Ours");
    await page.getByLabel("Used", { exact: true }).selectOption("only");
    await page.getByText("Only for some models or keys").click();
    await page.getByLabel("Models").fill("openai/none");
    await fits("new provider key");
    await inDialog("Check and save").click();
    await page.getByText("models: the model 'openai/none' does not exist.").waitFor();
    await page.getByLabel("Models").fill(providerModel);
    await page.getByLabel(/^own/).check();
    await inDialog("Check and save").click();
    await page.getByRole("heading", { name: "Ours" }).waitFor();
    await page.getByText("Valid", { exact: true }).waitFor();
    await isForgotten();
    await fits("provider keys");
    const [saved] = await stored();
    expect(saved).toMatchObject({ label: "sk-...good", mode: "only", models: [providerModel], key_ids: [own.id] });

    accepted = next;
    await button("Test again").click();
    await page.getByText("Invalid", { exact: true }).waitFor();
    await page.getByText("status 401: Unknown key.", { exact: true }).waitFor();
    await fits("invalid");
    await button("Replace the credential").click();
    await page.getByLabel("API key").fill(next);
    await fits("replace");
    await inDialog("Check and replace").click();
    await page.getByText("sk-...next").waitFor();
    await page.getByText("Valid", { exact: true }).waitFor();
    await isForgotten();

    const called = await postWith(service.baseUrl, own.key)("/v1/chat/completions", asking(providerModel));
    expect([called.status, called.headers.get("x-xm-upstream-key")]).toEqual([200, "own"]);
    await page.getByRole("link", { name: "Calls and fees" }).click();
    const calls = page.getByRole("table", { name: /^Requests/ }).locator("tbody tr");
    await calls.getByText("own key").waitFor();
    expect(await page.getByLabel("Provider key", { exact: true }).inputValue()).toBe(saved?.id);
    await fits("calls");
    await calls.getByRole("link").click();
    await page.getByText("List price").waitFor();
    await page.getByText("It ran with your own provider key").waitFor();
    await fits("call");
    await page.getByRole("link", { name: String(saved?.id) }).waitFor();
    await page.goto("/dashboard/provider-keys");

    await button("Edit").click();
    await page.getByLabel("Name").fill("Renamed");
    await page.getByLabel("Used", { exact: true }).selectOption("last");
    await page.getByLabel("Priority").fill("-2");
    await page.getByLabel("Models").fill("");
    await fits("edit");
    await inDialog("Save").click();
    await page.getByRole("heading", { name: "Renamed" }).waitFor();
    await button("Disable").click();
    await page.getByRole("main").getByText("Disabled", { exact: true }).waitFor();
    const [edited] = await stored();
    expect(edited).toMatchObject({ mode: "last", priority: -2, models: null, key_ids: [own.id], disabled: true });
    await button("Enable").click();
    await page.getByRole("main").getByText("Disabled", { exact: true }).waitFor({ state: "detached" });

    await button("Delete").click();
    await fits("delete");
    await inDialog("Delete the provider key").click();
    await page.getByText("No provider keys yet").waitFor();
    expect(await stored()).toEqual([]);

    // A cloud has forms and settings of its own.
    await button("New provider key").click();
    await page.getByLabel("Provider", { exact: true }).selectOption("cloud");
    await page.getByLabel("Credential", { exact: true }).selectOption("aws_access_key");
    await page.getByLabel("Access key id").fill(`ASIA${secret}`);
    await page.getByLabel("Secret access key").fill("short");
    await page.getByLabel("Region").fill("eu-west-1");
    await inDialog("Check and save").click();
    await page.getByText(/^credential\.secret_access_key: /).waitFor();
    await page.getByLabel("Secret access key").fill(`secret-${secret}`);
    await fits("cloud");
    await inDialog("Check and save").click();
    await page.getByText("ASIA...2345").waitFor();
    const [cloud] = await stored();
    expect(cloud).toMatchObject({ provider: "cloud", label: "ASIA...2345", config: { region: "eu-west-1" } });
  },
);
