import { z } from "zod";
import { providerKeyModes, providerKeyStatuses } from "#provider-keys";
import { fields, inputFields, orNull, tag, unixSeconds } from "../http/fields.ts";
import { name } from "../http/input.ts";
import { configInput, credentialForms, maxCredential } from "../provider-keys/index.ts";

/** The objects of customers' provider keys (docs/guides/own-provider-keys.md). */

const maxListed = 100;
const maxPriority = 1_000;

const credential = z
  .union([z.string().min(1).max(maxCredential), z.record(z.string().max(64), z.unknown())])
  .describe("An API key; for clouds also an object. It is stored sealed and never returned");
const mode = z
  .enum(providerKeyModes)
  .describe("`first`, `last`: before or after the service's own key for the provider; `only`: never with that");
const priority = z.int().min(-maxPriority).max(maxPriority).describe("Keys with lower numbers are tried first");
const ids = (what: string) =>
  z.array(z.string().min(1).max(200)).min(1).max(maxListed).nullable().describe(`${what}; null stands for all`);
const modelIds = ids("Ids of models that it is used for");
const keyIds = ids("The account's keys whose calls may use it");
const disabled = z.boolean();

export const newProviderKey = inputFields({
  provider: z.string().min(1).max(100).describe("The id of an upstream, such as `openai`").meta({ example: "openai" }),
  credential,
  name: name.optional(),
  mode: mode.optional(),
  priority: priority.optional(),
  disabled: disabled.optional(),
  models: modelIds.optional(),
  key_ids: keyIds.optional(),
  config: configInput.optional(),
}).meta({ id: "NewProviderKey" });

export const providerKeyPatch = inputFields({
  credential: credential.optional().describe("Replaces the credential"),
  name: name.nullable().optional(),
  mode: mode.optional(),
  priority: priority.optional(),
  disabled: disabled.optional(),
  models: modelIds.optional(),
  key_ids: keyIds.optional(),
  config: configInput.optional().describe("Replaces the configuration"),
}).meta({ id: "ProviderKeyPatch" });

export const providerKeyFields = {
  id: z.string().meta({ example: "pkey_2kT9vQ4mXw7pLr3sZb8n" }),
  object: tag("provider_key"),
  provider: z.string().meta({ example: "openai" }),
  name: orNull(z.string()),
  label: z.string().describe("The shown part of the credential").meta({ example: "sk-...AbCd" }),
  mode: z.enum(providerKeyModes),
  priority: z.int(),
  disabled: z.boolean(),
  models: orNull(z.array(z.string())),
  key_ids: orNull(z.array(z.string())),
  config: z.object({
    resource: z.string().optional(),
    region: z.string().optional(),
    project: z.string().optional(),
    deployments: z.record(z.string(), z.string()).optional(),
  }),
  version: z.int().describe("Raised whenever the credential is replaced"),
  status: z.enum(providerKeyStatuses).describe("What the provider last said; `unknown`: nothing yet"),
  status_message: orNull(z.string()),
  checked_at: orNull(unixSeconds),
  last_used_at: orNull(unixSeconds).describe("To the minute"),
  created_at: unixSeconds,
};

export const providerKey = fields(providerKeyFields).meta({ id: "ProviderKey" });
export const deletedProviderKey = fields({
  id: z.string(),
  object: tag("provider_key"),
  deleted: z.literal(true),
}).meta({ id: "DeletedProviderKey" });

const settings = ["resource", "region", "project", "deployments"] as const;

export const keyProvider = fields({
  id: z.string().describe("The `provider` of a provider key").meta({ example: "openai" }),
  object: tag("key_provider"),
  region: orNull(z.string()).describe("The region of keys whose `config` names none"),
  credentials: z.array(z.enum(credentialForms)).describe("The forms of a credential that it takes"),
  settings: z.array(z.enum(settings)).describe("The fields that `config` may have"),
  models: z.record(z.string(), z.string()).describe("Its names of the models that it serves, by model id"),
}).meta({ id: "KeyProvider" });

/** In the API, `provider` is the id of an upstream. */
export const shownProviderKey = <Key extends { readonly upstream: string }>({ upstream, ...key }: Key) => ({
  ...key,
  provider: upstream,
});
