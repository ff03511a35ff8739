import { filesSchema } from "#files";
import { idempotencySchema } from "#idempotency";
import { moneySchema } from "#money";
import { paymentsSchema } from "#payments";
import type { ModuleSchema } from "#platform/migrations";
import { responsesSchema } from "#stored-responses";

/** What every process needs of MongoDB. The API needs the schema of `api/keys`, too; `npm run migrate` applies all. */
export const sharedSchemas: readonly ModuleSchema[] = [
  moneySchema,
  paymentsSchema,
  filesSchema,
  idempotencySchema,
  responsesSchema,
];
