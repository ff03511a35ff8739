import { filesSchema } from "#files";
import { idempotencySchema } from "#idempotency";
import { moneySchema } from "#money";
import { paymentsSchema } from "#payments";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { responsesSchema } from "#stored-responses";

/**
 * The MongoDB schemas that every process needs. `api/migrations.ts` has those of the API; `npm run migrate` applies all.
 */
export const sharedSchemas: readonly ModuleSchema[] = [
  moneySchema,
  paymentsSchema,
  filesSchema,
  idempotencySchema,
  responsesSchema,
];
