import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { catalogWith, serviceOfFile } from "../support/service-setup.ts";

const running = serviceOfFile({ ANTHROPIC_API_KEY: "k", GEMINI_API_KEY: "k" });

const shipped = JSON.parse(readFileSync(new URL("../../shared/catalog/models.json", import.meta.url), "utf8")) as {
  models: { id: string }[];
};
const localChat = shipped.models.find(({ id }) => id === "local/chat");
const more = Array.from({ length: 1000 }, (_, at) => ({ ...localChat, id: `local/more-${at}` }));
/** Another instance, without these providers' keys, and with so many models that every list has pages. */
const crowded = serviceOfFile({ CATALOG_FILE: catalogWith({}, {}, more) });

const asAnthropic = { "anthropic-version": "2023-06-01" };

async function get<Body>(path: string, headers: Record<string, string> = {}, of = running) {
  const response = await fetch(of.service.baseUrl + path, { headers });
  return { status: response.status, body: (await response.json()) as Body };
}
async function ok<Body>(path: string, headers: Record<string, string>, of = running): Promise<Body> {
  const { status, body } = await get<Body>(path, headers, of);
  expect(status).toBe(200);
  return body;
}

interface MessagesPage {
  readonly data: readonly { readonly id: string }[];
  readonly has_more: boolean;
}
const messages = (query: Record<string, string>, of = running) =>
  ok<MessagesPage>(`/v1/models?${new URLSearchParams(query).toString()}`, asAnthropic, of);
const ids = ({ data }: MessagesPage) => data.map(({ id }) => id);

interface GeminiPage {
  readonly models: readonly { readonly name: string }[];
  readonly nextPageToken?: string;
}
const gemini = (query: Record<string, string>, of = running) =>
  ok<GeminiPage>(`/v1beta/models?${new URLSearchParams(query).toString()}`, {}, of);

/** All names on the pages from this one on. */
async function namesFrom(pageToken: string, of = running): Promise<readonly string[]> {
  const { models, nextPageToken } = await gemini({ pageToken, pageSize: "1000" }, of);
  return [...models.map(({ name }) => name), ...(nextPageToken ? await namesFrom(nextPageToken, of) : [])];
}

describe("the Messages list", () => {
  test("has 20 to a page, and 1000 at most", async () => {
    const all = ids(await messages({ limit: "1000" }, crowded));
    expect(all).toHaveLength(1000);
    const page = await messages({}, crowded);
    expect(page).toMatchObject({ has_more: true, first_id: all[0], last_id: all[19] });
    expect(ids(page)).toEqual(all.slice(0, 20));
    const rest = await messages({ limit: "1000", after_id: all[999] ?? "" }, crowded);
    expect(rest).toMatchObject({ has_more: false, data: [{ type: "model" }] });
  });

  test("pages after and before a model exclude it; an empty page has no ids", async () => {
    const all = ids(await messages({}));
    const [first = "", second = "", third = ""] = all;
    const last = all.at(-1) ?? "";
    expect(ids(await messages({ after_id: first }))).toEqual(all.slice(1));
    expect(await messages({ before_id: third })).toMatchObject({ has_more: false, first_id: first, last_id: second });
    expect(await messages({ before_id: third, limit: "1" })).toMatchObject({ has_more: true, data: [{ id: second }] });
    expect(await messages({ after_id: first, limit: "1" })).toMatchObject({ has_more: true, data: [{ id: second }] });
    const empty = { data: [], has_more: false, first_id: null, last_id: null };
    expect(await messages({ after_id: last })).toEqual(empty);
    expect(await messages({ before_id: first })).toEqual(empty);
  });

  test("continues after a model that is no longer listed, by either of its names", async () => {
    const all = ids(await messages({}));
    const at = all.indexOf("local/chat");
    expect([at > 0, at < all.length - 1]).toEqual([true, true]);
    for (const after_id of [all[0] ?? "", `anthropic/${all[0]}`])
      expect(ids(await messages({ after_id, limit: "1" }, crowded))).toEqual(["local/chat"]);
    const page = await messages({ before_id: all.at(-1) ?? "", limit: "1000" }, crowded);
    expect([ids(page).length, page.has_more]).toEqual([1000, true]);
  });
});

describe("the Gemini list", () => {
  test("has 50 to a page, and 1000 at most, also if more are asked for", async () => {
    const { models, nextPageToken } = await gemini({ pageSize: "100000" }, crowded);
    expect([models.length, nextPageToken]).toEqual([1000, expect.any(String)]);
    for (const query of [{}, { pageSize: "0" }, { pageSize: "50", pageToken: "" }]) {
      const page = await gemini(query, crowded);
      expect(page.models).toEqual(models.slice(0, 50));
    }
    expect(await gemini({ pageSize: "1000" })).not.toHaveProperty("nextPageToken");
  });

  test("a token continues where its page ended, also after models were added and removed", async () => {
    const all = await namesFrom("");
    const there = new Set(all);
    for (const pageSize of [1, 2, 5, all.length - 1]) {
      const { nextPageToken = "" } = await gemini({ pageSize: `${pageSize}` });
      expect(await namesFrom(nextPageToken)).toEqual(all.slice(pageSize));
      // The other instance lists no model of Anthropic or Google, and many models in between.
      const later = await namesFrom(nextPageToken, crowded);
      expect(later.filter((name) => there.has(name))).toEqual(
        all.slice(pageSize).filter((name) => /^models\/(local|openai)\//.test(name)),
      );
    }
  });
});

test("a model that is not listed is not found by its name either", async () => {
  const { data } = await messages({});
  for (const [path, headers] of [
    [`/v1/models/${data[0]?.id}`, asAnthropic],
    [`/v1beta/models/anthropic/${data[0]?.id}`, {}],
  ] as const) {
    expect((await get(path, headers)).status).toBe(200);
    expect((await get(path, headers, crowded)).status).toBe(404);
  }
});

test.each([
  ["limit", ["0", "1001", "-1", "1.5", "", "many", "1e2"]],
  ["after_id", ["", "claude-none", "openai/gpt-4.1-mini", "__proto__"]],
  ["before_id", ["", "claude-none", "openai/gpt-4.1-mini", "__proto__"]],
  ["lifecycle", ["", "ancient"]],
])("%s of the Messages list out of range is 400 that names it", async (param, values) => {
  for (const value of values) {
    const { status, body } = await get(`/v1/models?${param}=${encodeURIComponent(value)}`, asAnthropic);
    expect([value, status, body]).toMatchObject([
      value,
      400,
      { type: "error", error: { type: "invalid_request_error", message: expect.stringContaining(param) as string } },
    ]);
  }
});

test.each([
  "limit=1&limit=2",
  "after_id=local%2Fchat&before_id=local%2Fchat",
  "lifecycle[]=active&lifecycle[]=active&lifecycle[]=active&lifecycle[]=active",
])("%s of the Messages list is 400", async (query) => {
  expect((await get(`/v1/models?${query}`, asAnthropic)).status).toBe(400);
});

const token = (text: string) => Buffer.from(text).toString("base64url");

test.each([
  ["pageSize", ["-1", "1.5", "", "many", "1e2"]],
  ["pageToken", ["50", "%", "=", token("nothing"), token("NaN "), token("01 local/chat"), `${token("1 x")}=`]],
])("%s of the Gemini list out of range is 400 that names it", async (param, values) => {
  for (const value of values) {
    const { status, body } = await get(`/v1beta/models?${param}=${encodeURIComponent(value)}`);
    const message = expect.stringContaining(param) as string;
    expect([value, status, body]).toEqual([value, 400, { error: { code: 400, message, status: "INVALID_ARGUMENT" } }]);
  }
});
