import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import express from "express";
import { expect, onTestFinished, test } from "vitest";
import { errorHandler } from "../../api/http/errors.ts";
import { requestId } from "../../api/http/headers.ts";
import { pageHeaders } from "../../api/routes/dashboard/index.ts";
import { pageRoutes } from "../../api/routes/dashboard/pages.ts";
import { systemClock } from "../../shared/platform/clock.ts";
import { createLogger } from "../../shared/platform/logger.ts";
import { temporaryFolder } from "../support/program.ts";

const script = `console.log(${JSON.stringify("x".repeat(5_000))});`;

/** Serves the page's routes over a folder like that of a build. */
async function servePages() {
  const folder = await temporaryFolder();
  const build = async (html: string) => {
    await mkdir(join(folder, "assets"), { recursive: true });
    await writeFile(join(folder, "assets/index-a1b2.js"), script);
    await writeFile(join(folder, "favicon.svg"), "<svg/>");
    await writeFile(join(folder, "index.html"), html);
  };
  const app = express();
  app.use(requestId(systemClock));
  const publicUrl = () => "https://ai.example/base";
  app.use("/dashboard", pageHeaders({ publicUrl, storage: "https://files.example:9000/x" }), pageRoutes(folder));
  app.use(errorHandler({ clock: systemClock, log: createLogger("test", "silent") }));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/dashboard`;
  const get = (path: string, headers: Record<string, string> = {}) => fetch(`${url}${path}`, { headers });
  return { build, get, url };
}

const navigation = { accept: "text/html,application/xhtml+xml,*/*;q=0.8", "sec-fetch-mode": "navigate" };

test("without a build the page says how to make one, and a build is served without a restart", async () => {
  const { build, get } = await servePages();
  const missing = await get("/", navigation);
  expect([missing.status, missing.headers.get("cache-control")]).toEqual([503, "no-store"]);
  expect(await missing.text()).toContain("npm run build");
  await build("<p>first</p>");
  expect(await (await get("/", navigation)).text()).toBe("<p>first</p>");
});

test("every route of the page is answered with it, and a file that does not exist with 404", async () => {
  const { build, get, url } = await servePages();
  await build("<p>page</p>");
  for (const path of ["", "/", "/keys", "/requests?status=failed", "/models/openai/gpt-4.1", "/sign-in"]) {
    const answer = await get(path, navigation);
    expect([path, answer.status, await answer.text()]).toEqual([path, 200, "<p>page</p>"]);
  }
  for (const path of ["/assets/index-old.js", "/nothing.js", "/../package.json", "/%2e%2e/package.json", "/%5c..%5cx"])
    expect([path, (await get(path)).status]).toEqual([path, 404]);
  expect((await get("/assets/index-old.js", navigation)).status).toBe(404);
  for (const path of ["/%ff", "/%E0%A4%A", "/%", "/%zz", "/assets/%E0%A4%A", "/keys/%c0%ae"])
    for (const headers of [navigation, {}]) expect([path, (await get(path, headers)).status]).toEqual([path, 400]);
  const write = await fetch(url, { method: "POST" });
  expect([write.status, write.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

test("assets are cached forever, the page is asked for again, and both come compressed", async () => {
  const { build, get } = await servePages();
  await build("<p>page</p>");
  const page = await get("/keys", navigation);
  expect(page.headers.get("cache-control")).toBe("no-cache");
  const again = await get("/keys", { ...navigation, "if-none-match": page.headers.get("etag") ?? "" });
  expect([again.status, await again.text()]).toEqual([304, ""]);
  await build("<p>other</p>");
  expect((await get("/keys", { ...navigation, "if-none-match": page.headers.get("etag") ?? "" })).status).toBe(200);

  for (const [encoding, decode] of [
    ["br", brotliDecompressSync],
    ["gzip", gunzipSync],
  ] as const) {
    const request = http.get((await get("/assets/index-a1b2.js")).url, { headers: { "accept-encoding": encoding } });
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    expect(response.headers).toMatchObject({
      "content-encoding": encoding,
      "cache-control": "public, max-age=31536000, immutable",
      "content-type": "text/javascript; charset=utf-8",
      vary: "accept-encoding",
    });
    expect(Buffer.concat(chunks).length).toBeLessThan(300);
    expect(decode(Buffer.concat(chunks)).toString()).toBe(script);
  }
});

test("the content policy has nothing inline, and no host but the storage and the public address", async () => {
  const { build, get } = await servePages();
  await build("<p>page</p>");
  const { headers } = await get("/", navigation);
  const policy = Object.fromEntries(
    (headers.get("content-security-policy") ?? "").split(";").map((each) => {
      const [name = "", ...sources] = each.trim().split(" ");
      return [name, sources.join(" ")];
    }),
  );
  const linked = "'self' https://ai.example https://files.example:9000";
  expect(policy).toEqual({
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "font-src": "'self'",
    "connect-src": linked,
    "img-src": `${linked} blob:`,
    "media-src": `${linked} blob:`,
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
  });
  expect(Object.fromEntries(headers)).toMatchObject({
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": expect.stringContaining("camera=()") as string,
  });
});
