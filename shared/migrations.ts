import { batchesSchema } from "#batches";
import { detachedCallsSchema } from "#detached-calls";
import { filesSchema } from "#files";
import { idempotencySchema } from "#idempotency";
import { keysSchema } from "#key-records";
import { moneySchema } from "#money";
import { paymentsSchema } from "#payments";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { providerKeysSchema } from "#provider-keys";
import { responsesSchema } from "#stored-responses";
import { webhooksSchema } from "#webhooks";

/**
 * The MongoDB schemas that every process needs. `api/migrations.ts` has those of the API; `npm run migrate` applies all.
 */
export const sharedSchemas: readonly ModuleSchema[] = [
  moneySchema,
  keysSchema,
  paymentsSchema,
  filesSchema,
  detachedCallsSchema,
  batchesSchema,
  idempotencySchema,
  responsesSchema,
  webhooksSchema,
  providerKeysSchema,
];
