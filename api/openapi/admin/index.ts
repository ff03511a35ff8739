import { createDocument } from "zod-openapi";
import { pathsOf } from "../operation.ts";
import { accounts } from "./accounts.ts";
import { money } from "./money.ts";
import { service } from "./service.ts";

const groups = [service, accounts, money];

const description = `For operators: accounts, keys, balances, and how the service is doing.

Amounts are exact decimal strings of USD, times are unix seconds. Unknown fields are a 400 that names the field. Lists are newest first, unless they say otherwise. Every change is in the audit log, under the name of the operator's token.`;

/** OpenAPI 3.1 of the admin interface, whose paths are under `serverUrl`. */
export const adminDocument = (serverUrl: string) =>
  createDocument({
    openapi: "3.1.0",
    info: {
      title: "Inference service: admin interface",
      version: "1.0.0",
      description,
      license: { name: "Proprietary", identifier: "LicenseRef-Proprietary" },
    },
    servers: [{ url: serverUrl }],
    tags: groups.map(({ name, description: text }) => ({ name, description: text })),
    security: [{ bearer: [] }],
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "`ADMIN_TOKEN`, or one of `ADMIN_TOKENS`" },
      },
    },
    paths: pathsOf(groups),
  });
