import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";

/** `only`: the upstream is never called with the operator's key. `first`, `last`: before or after the operator's. */
export const providerKeyModes = ["first", "only", "last"] as const;
export type ProviderKeyMode = (typeof providerKeyModes)[number];

/** The provider's latest verdict on a credential. `unknown`: nothing yet, or it could not be reached. */
export const providerKeyStatuses = ["ok", "invalid", "no_permission", "rate_limited", "unknown"] as const;
export type ProviderKeyStatus = (typeof providerKeyStatuses)[number];

/** The parts of a cloud's address, and the names of deployments at Azure by the upstream's name of the model. */
export interface ProviderKeyConfig {
  readonly resource?: string | undefined;
  readonly region?: string | undefined;
  readonly project?: string | undefined;
  readonly deployments?: Readonly<Record<string, string>> | undefined;
}

const definition = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  upstream: { type: String, required: true },
  name: { type: String },
  label: { type: String, required: true },
  mode: { type: String, enum: providerKeyModes, required: true },
  priority: { type: Number, required: true },
  disabled: { type: Boolean },
  models: { type: [String], default: undefined },
  keyIds: { type: [String], default: undefined },
  config: { type: Object, required: true },
  sealed: { type: String, required: true },
  version: { type: Number, required: true },
  status: { type: String, enum: providerKeyStatuses, required: true },
  statusMessage: { type: String },
  checkedAt: { type: Date },
  lastUsedAt: { type: Date },
  /** Set by the write that makes the status `invalid`, until the event of that is recorded. */
  eventDueAt: { type: Date },
  createdAt: { type: Date, required: true },
} as const;
export type StoredProviderKey = DocumentOf<
  typeof definition,
  {
    mode: ProviderKeyMode;
    status: ProviderKeyStatus;
    config: ProviderKeyConfig;
    models?: readonly string[];
    keyIds?: readonly string[];
  }
>;

/** A credential that a worker is to check, whether or not it is stored yet. */
const check = {
  _id: { type: String, required: true },
  account: { type: String, required: true },
  /** The id of the provider key under which the credential is sealed. */
  key: { type: String, required: true },
  upstream: { type: String, required: true },
  config: { type: Object, required: true },
  sealed: { type: String, required: true },
  version: { type: Number, required: true },
  status: { type: String, enum: providerKeyStatuses },
  message: { type: String },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
} as const;
export type StoredCheck = DocumentOf<typeof check, { status?: ProviderKeyStatus; config: ProviderKeyConfig }>;

export const providerKeysSchema = {
  module: "provider-keys",
  unsharded: {
    providerKeys: "few, at most 100 for an account, and cached by the API",
    providerKeyChecks: "at most five for an account, each for some minutes",
  },
  migrations: [
    createCollections("providerKeys, providerKeyChecks", [
      {
        collection: "providerKeys",
        indexes: [{ key: { account: 1, createdAt: -1, _id: -1 } }, { key: { eventDueAt: 1 }, sparse: true }],
      },
      {
        collection: "providerKeyChecks",
        indexes: [{ key: { account: 1 } }, { key: { expiresAt: 1 }, expireAfterSeconds: 0 }],
      },
    ]),
  ],
} satisfies ModuleSchema;

export const openCollections = ({ mongo }: Uses<"mongo">) => ({
  keys: openCollection<StoredProviderKey>(mongo, "providerKeys", definition).collection,
  checks: openCollection<StoredCheck>(mongo, "providerKeyChecks", check).collection,
});
export type Collections = ReturnType<typeof openCollections>;
