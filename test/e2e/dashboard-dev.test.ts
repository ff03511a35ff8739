import { createServer } from "vite";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../../infra/embedded/index.ts";
import { browse, cookieOf } from "../support/dashboard-setup.ts";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";

test("the development server shows the page's sources, and passes sessions and calls on to a running service", async () => {
  const service = await startService(await testStores());
  const { key } = await service.account("5.00");
  process.env["DASHBOARD_SERVICE"] = service.baseUrl;
  onTestFinished(() => void delete process.env["DASHBOARD_SERVICE"]);
  const port = await freePort("127.0.0.1");
  const vite = await createServer({
    configFile: "dashboard/vite.config.ts",
    logLevel: "error",
    server: { host: "127.0.0.1", port, strictPort: true, ws: false, watch: null },
    optimizeDeps: { noDiscovery: true },
  });
  onTestFinished(() => vite.close());
  await vite.listen();
  const dev = { baseUrl: `http://127.0.0.1:${port}` };

  const page = await fetch(`${dev.baseUrl}/dashboard/keys`, { headers: { accept: "text/html" } });
  expect(await page.text()).toContain("/dashboard/@vite/client");

  // The browser reports the origin of a write: the development server's own page, or another one.
  const write = (origin: string) => browse(dev, "POST", "/dashboard/session", { body: { key }, headers: { origin } });
  expect(await write("https://elsewhere.example")).toMatchObject({ status: 403 });
  const signedIn = await write(dev.baseUrl);
  expect(signedIn).toMatchObject({ status: 200, body: { account: { name: "test" }, operator: null } });
  const cookie = cookieOf(signedIn);
  const balance = await browse(dev, "GET", "/dashboard/api/v1/balance", { cookie });
  expect(balance).toMatchObject({ status: 200, body: { available_usd: "5.00" } });
  expect((await browse(dev, "GET", "/media/none")).body.error).toMatchObject({ code: expect.any(String) as string });
  expect((await browse(dev, "DELETE", "/dashboard/session?kind=account", { cookie })).status).toBe(200);
  expect((await browse(dev, "GET", "/dashboard/session", { cookie })).body).toMatchObject({ account: null });
});
