import { z } from "zod";
import { fields, usd } from "../../http/fields.ts";
import { found, listOf, pageQuery, readPage } from "../../http/page.ts";
import {
  key,
  keyAccount,
  keyFields,
  keyPatch,
  keyWithSecret,
  listedKey,
  newKey,
  spentBudget,
  withSpent,
} from "../key-object.ts";
import { route } from "./route.ts";

const ownKey = fields({
  ...keyFields,
  account: keyAccount,
  budget: spentBudget,
  usage: fields({ day_usd: usd, month_usd: usd, total_usd: usd }).describe("Cost of the key's calls; days are in UTC"),
}).meta({ id: "OwnKey" });

const keyList = listOf(listedKey).meta({ id: "KeyList" });
const params = { id: z.string().meta({ example: "key_2kT9vQ4mXw7pLr3sZb8n" }) };

export const keyRoutes = [
  route({
    method: "get",
    path: "/v1/key",
    operationId: "getOwnKey",
    summary: "The key of this request, with its account and spending",
    answers: { 200: "The key" },
    answer: ownKey,
    async handle({ keys, money }, { who: caller }) {
      const { account: id, keyId } = caller;
      const [key, account, usage, budget] = await Promise.all([
        keys.get(id, keyId),
        money.account(id),
        money.usageOfKey(id, keyId),
        keys.budgetOf(caller),
      ]);
      return { ...key, account: found(account, "account"), budget, usage };
    },
  }),
  route({
    method: "get",
    path: "/v1/keys",
    operationId: "listKeys",
    summary: "The account's keys, newest first",
    scope: "manage",
    query: pageQuery,
    answers: { 200: "The keys" },
    answer: keyList,
    async handle({ keys }, { who: { account }, query }) {
      return readPage(query, async (page) => (await keys.list(account, page)).map(withSpent));
    },
  }),
  route({
    method: "post",
    path: "/v1/keys",
    operationId: "createKey",
    summary: "Create a key with at most the rights of the key of this request",
    scope: "manage",
    body: newKey.meta({ id: "NewKey" }),
    examples: {
      budget: {
        summary: "Five dollars per day, for some models",
        value: { name: "ci", budget: { limit_usd: "5", period: "day" }, models: ["local/*"] },
      },
    },
    answers: { 201: "The key, with its secret" },
    answer: keyWithSecret,
    errors: [409],
    async handle({ keys }, { who: caller, body }) {
      const { key, secret } = await keys.issue(caller.account, body, caller);
      return { ...key, key: secret };
    },
  }),
  route({
    method: "patch",
    path: "/v1/keys/{id}",
    operationId: "updateKey",
    summary: "Change a key; takes effect everywhere within a second",
    scope: "manage",
    params,
    body: keyPatch.meta({ id: "KeyPatch" }),
    answers: { 200: "The key" },
    answer: key,
    handle: ({ keys }, { who: caller, params: { id }, body }) => keys.update(id, body, caller),
  }),
  route({
    method: "delete",
    path: "/v1/keys/{id}",
    operationId: "revokeKey",
    summary: "Revoke a key; takes effect everywhere within a second",
    scope: "manage",
    params,
    answers: { 200: "The key, with `revoked_at`" },
    answer: key,
    handle: ({ keys }, { who: caller, params: { id } }) => keys.revoke(id, caller),
  }),
];
