import { z } from "zod";
import { systemClock } from "#platform/clock";
import { createProcessLogger } from "#platform/logger";
import { connectMongo } from "#platform/mongo/connection";
import { createSessions } from "#sessions";
import { createAdminTokens } from "../../api/routes/admin/index.ts";
import { createAdminClient } from "./admin-client.ts";
import type { Demo } from "./demo.ts";

/** Each code starts one dashboard session and is valid for five minutes. */
export interface SignInCodes {
  readonly account: string;
  readonly operator: string;
}

const keyShape = z.object({ id: z.string(), scopes: z.array(z.string()) });
const scopes = ["inference", "manage"];

/**
 * Issues codes for the demo's account and its operator, at the address where its API listens. They are written to the database rather than requested from the
 * API, so that no deployment has an endpoint that issues them.
 */
export async function issueSignInCodes(demo: Demo, origin: string): Promise<SignInCodes> {
  const { adminToken } = demo;
  const operator = createAdminTokens({ ADMIN_TOKEN: adminToken, ADMIN_TOKENS: undefined })?.find(adminToken);
  if (!operator) throw new TypeError("no admin token");
  const key = await demoKey(origin, demo.apiKey);
  // Demo keys of versions without scopes lack them.
  if (scopes.some((scope) => !key.scopes.includes(scope)))
    await createAdminClient({ url: origin, token: adminToken })("PATCH", `/keys/${key.id}`, { scopes });
  const mongo = await connectMongo(demo.mongodbUri, systemClock, createProcessLogger("start", "warn"));
  try {
    const sessions = createSessions({ mongo, clock: systemClock });
    const { name, seal } = operator;
    const ofAccount = await sessions.issueCode(() => ({ kind: "account", account: demo.accountId, key: key.id }));
    const ofOperator = await sessions.issueCode((code) => ({ kind: "operator", operator: name, sealed: seal(code) }));
    return { account: ofAccount.code, operator: ofOperator.code };
  } finally {
    await mongo.close();
  }
}

async function demoKey(origin: string, apiKey: string) {
  const answer = await fetch(`${origin}/v1/key`, { headers: { authorization: `Bearer ${apiKey}` } });
  return keyShape.parse(await answer.json());
}
