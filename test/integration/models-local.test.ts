import { expect, test } from "vitest";
import { testStores } from "../support/servers.ts";
import { startService } from "../support/service.ts";
import { asking, localModel } from "../support/service-setup.ts";

test.each(["off", ""])("with LOCAL_MODELS=%s the models of the workers do not exist", async (LOCAL_MODELS) => {
  const service = await startService(await testStores(), { env: { LOCAL_MODELS, OPENAI_API_KEY: "k" } });
  const customer = await service.account("1.00");
  const { openai, id } = customer;
  const owners = (await Array.fromAsync(openai.models.list())).map(({ id: model }) => model.split("/")[0]);
  expect(new Set(owners)).toEqual(new Set(["openai"]));
  await expect(openai.models.retrieve(localModel)).rejects.toMatchObject({ status: 404, code: "model_not_found" });
  for (const [path, body] of [
    ["/v1/chat/completions", asking(localModel)],
    ["/v1/messages", { ...asking(localModel), max_tokens: 5 }],
    ["/v1/embeddings", { model: "local/embeddings", input: "one" }],
    ["/v1/images/generations", { model: "local/image", prompt: "A sunrise" }],
    ["/v1beta/models/local/chat:generateContent", { contents: [{ parts: [{ text: "Hi" }] }] }],
  ] as const)
    expect([path, (await customer.post(path, body)).status]).toEqual([path, 404]);
  const catalog = await service.admin<{ data: { id: string }[] }>("GET", "/catalog");
  expect(JSON.stringify(catalog)).not.toContain("local/");
  expect(await service.admin("GET", `/accounts/${id}`)).toMatchObject({ available_usd: "1.00" });
});
