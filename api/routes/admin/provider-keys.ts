import { z } from "zod";
import { notConfigured } from "#errors";
import { fields, orNull, tag } from "../../http/fields.ts";
import { listOf, pageQuery, readPage } from "../../http/page.ts";
import { providerKeyFields, shownProviderKey } from "../provider-key-objects.ts";
import { type AdminRouteDeps, idOf, route } from "./route.ts";

const accountProviderKey = fields({ ...providerKeyFields, account: z.string() }).meta({ id: "AccountProviderKey" });

const sealedSecrets = fields({
  object: tag("sealed_secrets"),
  key: orNull(z.string()).describe("The id of the key under which the API seals; null if it has none"),
  remaining: z.int().describe("Objects with secrets under other keys"),
}).meta({ id: "SealedSecrets" });

async function remaining({ secrets, webhooks, providerKeys }: AdminRouteDeps) {
  const { currentKey: key } = secrets;
  if (key === undefined) return { key, remaining: 0 };
  const counts = await Promise.all([webhooks, providerKeys].map(({ sealedValues }) => sealedValues.countOthers(key)));
  return { key, remaining: counts.reduce((sum, count) => sum + count, 0) };
}

export const providerKeyRoutes = [
  route({
    method: "get",
    path: "/accounts/{id}/provider-keys",
    operationId: "listAccountProviderKeys",
    summary: "The account's own keys for providers, newest first",
    params: idOf("The account's id"),
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(accountProviderKey).meta({ id: "AccountProviderKeyList" }),
    handle: ({ providerKeys }, { params: { id }, query }) =>
      readPage(query, async (page) => (await providerKeys.list(id, page)).map(shownProviderKey)),
  }),
];

/** The key under which secrets of customers are sealed. */
export const secretRoutes = [
  route({
    method: "get",
    path: "/secrets",
    operationId: "getSealedSecrets",
    summary: "How many objects have secrets under old keys",
    answers: { 200: "The number" },
    answer: sealedSecrets,
    handle: remaining,
  }),
  route({
    method: "post",
    path: "/secrets/rewrap",
    operationId: "rewrapSecrets",
    summary: "Let a worker seal all secrets under its first key",
    description: "Afterwards old keys can be removed from `SECRETS_PRIVATE_KEYS`.",
    answers: { 202: "The number of objects whose secrets are under other keys" },
    answer: sealedSecrets,
    errors: [501],
    async handle(deps) {
      if (deps.secrets.currentKey === undefined) throw notConfigured("SECRETS_PUBLIC_KEY is not set.");
      await deps.queues.enqueueRewrap();
      return remaining(deps);
    },
  }),
];
