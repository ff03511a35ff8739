import type { Request } from "express";
import { z } from "zod";
import type { Audit } from "#audit";
import type { Caller } from "#keys";
import { localsOf } from "../../http/headers.ts";
import { flag } from "../../http/input.ts";
import { listOf, pageQuery, readPage, wholeList } from "../../http/page.ts";
import type { RouteCall } from "../../http/route.ts";
import {
  deletedProviderKey,
  keyProvider,
  newProviderKey,
  providerKey,
  providerKeyPatch,
  shownProviderKey,
} from "../provider-key-objects.ts";
import { route } from "./route.ts";

/** The keys of an account for providers (docs/guides/own-provider-keys.md). */

const scope = "manage" as const;
const params = { id: z.string().meta({ example: "pkey_2kT9vQ4mXw7pLr3sZb8n" }) };
const checkQuery = { check: flag.optional().describe("`false`: store the credential without checking it") };

/** Records a change in the audit log. Of a body everything but the credential is recorded. */
function recorded<Changed extends { readonly id: string }>(
  audit: Audit,
  { who: { keyId, account }, req, res }: Pick<RouteCall<Caller>, "who" | "req" | "res">,
  action: string,
  change: () => Promise<Changed>,
): Promise<Changed> {
  const { id } = req.params as { readonly id?: string };
  const targets = [...(id === undefined ? [] : [id]), account];
  const intent = { who: keyId, action, targets, changes: changesOf(req), requestId: localsOf(res).requestId };
  return audit.record(intent, change, (changed) => ({ status: res.statusCode, targets: [changed.id] }));
}

function changesOf({ body }: Request): object | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { credential, ...changes } = body as Readonly<Record<string, unknown>>;
  return { ...changes, ...(credential !== undefined && { credential: "***" }) };
}

export const providerKeyRoutes = [
  route({
    method: "post",
    path: "/v1/provider-keys",
    operationId: "createProviderKey",
    summary: "Store a key for a provider, which is checked first",
    description: "If no worker checks it within 20 seconds it is stored all the same, with the status `unknown`.",
    scope,
    query: checkQuery,
    body: newProviderKey,
    answers: { 201: "The provider key" },
    answer: providerKey,
    errors: [409, 501],
    async handle({ providerKeyManaging, audit }, call) {
      const { who, body, query } = call;
      const create = () => providerKeyManaging.create(who.account, body, query.check ?? true);
      return shownProviderKey(await recorded(audit, call, "POST /v1/provider-keys", create));
    },
  }),
  route({
    method: "get",
    path: "/v1/provider-keys",
    operationId: "listProviderKeys",
    summary: "The account's provider keys, newest first",
    scope,
    query: pageQuery,
    answers: { 200: "The provider keys" },
    answer: listOf(providerKey).meta({ id: "ProviderKeyList" }),
    handle: ({ providerKeys }, { who: { account }, query }) =>
      readPage(query, async (page) => (await providerKeys.list(account, page)).map(shownProviderKey)),
  }),
  route({
    method: "get",
    path: "/v1/provider-keys/providers",
    operationId: "listKeyProviders",
    summary: "The providers that take keys of customers",
    scope,
    answers: { 200: "The providers, in the order of the catalog" },
    answer: listOf(keyProvider).meta({ id: "KeyProviderList" }),
    errors: [501],
    handle: ({ providerKeyManaging }) => Promise.resolve(wholeList(providerKeyManaging.keyProviders())),
  }),
  route({
    method: "get",
    path: "/v1/provider-keys/{id}",
    operationId: "getProviderKey",
    summary: "One provider key",
    scope,
    params,
    answers: { 200: "The provider key" },
    answer: providerKey,
    handle: async ({ providerKeys }, { who: { account }, params: { id } }) =>
      shownProviderKey(await providerKeys.get(account, id)),
  }),
  route({
    method: "patch",
    path: "/v1/provider-keys/{id}",
    operationId: "updateProviderKey",
    summary: "Change a provider key, or replace its credential",
    description: "A new credential or configuration is checked first; if the provider refuses it, nothing changes.",
    scope,
    params,
    query: checkQuery,
    body: providerKeyPatch,
    answers: { 200: "The provider key" },
    answer: providerKey,
    errors: [409, 501],
    async handle({ providerKeyManaging, audit }, call) {
      const { who, params, body, query } = call;
      const update = () => providerKeyManaging.update(who.account, params.id, body, query.check ?? true);
      return shownProviderKey(await recorded(audit, call, "PATCH /v1/provider-keys/{id}", update));
    },
  }),
  route({
    method: "delete",
    path: "/v1/provider-keys/{id}",
    operationId: "deleteProviderKey",
    summary: "Delete a provider key with its credential",
    scope,
    params,
    answers: { 200: "The provider key was deleted" },
    answer: deletedProviderKey,
    handle({ providerKeyManaging, audit }, call) {
      const { who, params } = call;
      return recorded(audit, call, "DELETE /v1/provider-keys/{id}", async () => {
        await providerKeyManaging.delete(who.account, params.id);
        return { id: params.id, deleted: true as const };
      });
    },
  }),
  route({
    method: "post",
    path: "/v1/provider-keys/{id}/test",
    operationId: "testProviderKey",
    summary: "Check the credential by a request to the provider that costs nothing",
    description: "Waits for up to 20 seconds. A credential that the provider does not accept is a 400.",
    scope,
    params,
    answers: { 200: "The provider key, with what the provider said" },
    answer: providerKey,
    errors: [400],
    async handle({ providerKeyManaging, audit }, call) {
      const { who, params } = call;
      const test = () => providerKeyManaging.test(who.account, params.id);
      return shownProviderKey(await recorded(audit, call, "POST /v1/provider-keys/{id}/test", test));
    },
  }),
];
