import { describe, expect, test } from "vitest";
import { imagePrices, pngOf, wavOf } from "../support/generation-setup.ts";
import type { Customer } from "../support/service.ts";
import { catalogWith, refusalOf, serviceOfFile } from "../support/service-setup.ts";

const image = "local/image";
const transcription = "local/transcription";

/** Nothing can be stored: a request that would store a file gets a 503. */
const running = serviceOfFile({
  S3_ENDPOINT: "http://127.0.0.1:1",
  CATALOG_FILE: catalogWith({}, { ...imagePrices, [transcription]: { pricing: { minute: "0.006" } } }),
});

const routes = [
  { path: "/v1/images/edits", field: "image", file: pngOf(30, 20), model: image, prompt: "x" },
  { path: "/v1/images/variations", field: "image", file: pngOf(30, 20), model: image },
  { path: "/v1/audio/transcriptions", field: "file", file: wavOf(60), model: transcription },
  { path: "/v1/audio/translations", field: "file", file: wavOf(60), model: transcription },
] as const;
type Route = (typeof routes)[number];

const send = (
  { key }: Customer,
  { path, field, file, ...own }: Route,
  fields: Readonly<Record<string, string>> = {},
) => {
  const body = new FormData();
  for (const [name, value] of Object.entries({ ...own, ...fields })) body.append(name, value);
  body.append(field, new Blob([file]), "file");
  return fetch(running.service.baseUrl + path, { method: "POST", headers: { authorization: `Bearer ${key}` }, body });
};

describe.each(routes)("$path stores no file of a call", (route) => {
  test.each([
    ["of an unknown model", { model: "local/nothing" }, 404, "model_not_found"],
    ["of a model of another route", { model: "local/chat" }, 400, "model_not_supported"],
    ["with a size that the model does not have", { size: "9x9" }, 400, "invalid_value"],
  ])("%s", async (_, fields, status, code) => {
    const customer = await running.service.account("1");
    expect(await refusalOf(await send(customer, route, fields))).toMatchObject({ status, error: { code } });
  });

  test("that the balance does not cover, or of a frozen account", async () => {
    for (const balance of ["0", "0.001"]) {
      const customer = await running.service.account(balance);
      const refused = await refusalOf(await send(customer, route));
      expect(refused).toMatchObject({ status: 402, error: { code: "insufficient_balance" } });
    }
    const customer = await running.service.account("1");
    expect(await refusalOf(await send(customer, route))).toMatchObject({ status: 503, error: { code: "no_capacity" } });
    await running.service.admin("PATCH", `/accounts/${customer.id}`, { frozen: true });
    await expect
      .poll(async () => (await refusalOf(await send(customer, route))).error)
      .toMatchObject({ code: "account_frozen" });
  });
});
