import { z } from "zod";
import { fields, tag, unixSeconds } from "../../http/fields.ts";
import { found, listOf, pageQuery, readPage } from "../../http/page.ts";
import { key, keyPatch, keyWithSecret, listedKey, newKey, withSpent } from "../key-object.ts";
import { idOf, route } from "./route.ts";

const ofAccount = idOf("The account's id");
const ofKey = idOf("The key's id");

const signInLink = fields({
  object: tag("sign_in_link"),
  account: z.string(),
  url: z.string().describe("Signs in to the dashboard with the rights of the key"),
  expires_at: unixSeconds,
}).meta({ id: "SignInLink" });

export const keyRoutes = [
  route({
    method: "get",
    path: "/accounts/{id}/keys",
    operationId: "listKeys",
    summary: "The account's keys, newest first",
    params: ofAccount,
    query: pageQuery,
    answers: { 200: "A page" },
    answer: listOf(listedKey).meta({ id: "ListedKeyList" }),
    async handle({ keys, money }, { params, query }) {
      const { id } = found(await money.account(params.id), "account");
      return readPage(query, async (page) => (await keys.list(id, page)).map(withSpent));
    },
  }),
  route({
    method: "post",
    path: "/accounts/{id}/keys",
    operationId: "createKey",
    summary: "Create a key; only this response contains its secret",
    params: ofAccount,
    body: newKey,
    answers: { 201: "The key and its secret" },
    answer: keyWithSecret,
    async handle({ keys }, { params: { id }, body }) {
      const { key, secret } = await keys.issue(id, body);
      return { ...key, key: secret };
    },
  }),
  route({
    method: "patch",
    path: "/keys/{id}",
    operationId: "updateKey",
    summary: "Change a key",
    params: ofKey,
    body: keyPatch,
    answers: { 200: "The key" },
    answer: key,
    handle: ({ keys }, { params: { id }, body }) => keys.update(id, body),
  }),
  route({
    method: "delete",
    path: "/keys/{id}",
    operationId: "revokeKey",
    summary: "Revoke a key; takes effect in every instance within a second",
    params: ofKey,
    answers: { 200: "The revoked key" },
    answer: key,
    handle: ({ keys }, { params: { id } }) => keys.revoke(id),
  }),
  route({
    method: "post",
    path: "/keys/{id}/sign-in-links",
    operationId: "createSignInLink",
    summary: "Create a link that signs in to the dashboard once, within five minutes, with the rights of the key",
    params: ofKey,
    answers: { 201: "The link" },
    answer: signInLink,
    async handle({ keys, sessions, publicUrl }, { params: { id } }) {
      const { account } = found(await keys.validKey(id), "valid key");
      const { code, expiresAt } = await sessions.issueCode(() => ({ kind: "account", account, key: id }));
      // Servers and their logs do not see a fragment.
      return { account, url: `${publicUrl()}/dashboard#code=${code}`, expiresAt };
    },
  }),
];
