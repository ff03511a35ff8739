import { auditSchema } from "#audit";
import type { ModuleSchema } from "#platform/mongo/migrations";
import { refusalsSchema } from "#refusals";
import { cacheUsageSchema } from "#response-cache";
import { sessionsSchema } from "#sessions";

/** The MongoDB schemas that only the API needs. */
export const apiSchemas: readonly ModuleSchema[] = [sessionsSchema, auditSchema, refusalsSchema, cacheUsageSchema];
