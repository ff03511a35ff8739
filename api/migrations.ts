import { auditSchema } from "#audit";
import { keysSchema } from "#keys";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { refusalsSchema } from "#refusals";
import { sessionsSchema } from "#sessions";

/** The MongoDB schemas that only the API needs. */
export const apiSchemas: readonly ModuleSchema[] = [keysSchema, sessionsSchema, auditSchema, refusalsSchema];
