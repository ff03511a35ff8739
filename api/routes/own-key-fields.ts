import { z } from "zod";
import type { Attempt, RequestRecord } from "#money";
import { orNull, usd } from "../http/fields.ts";

/** The fields of a call that concern the account's own provider keys. */
export const ownKeyFields = {
  byok: z.boolean().describe("The call ran with a provider key of the account, so the charge is a fee"),
  provider_key_id: orNull(z.string()).describe("That key"),
  list_usd: orNull(usd).describe("What the call would have cost otherwise"),
  fee_usd: orNull(usd).describe("The charge, if it is a fee"),
};

export const ownKeyOf = (request: Partial<Pick<RequestRecord, "byok">> | undefined, costNanoUsd: bigint) => {
  const { byok } = request ?? {};
  return {
    byok: byok !== undefined,
    providerKeyId: byok?.key,
    listNanoUsd: byok?.listNanoUsd,
    feeNanoUsd: byok && costNanoUsd,
  };
};

export const attemptCredential = {
  credential: z
    .string()
    .describe("`own:<id>` of a provider key of the account, or `shared`")
    .meta({ example: "shared" }),
};

export const shownAttempt = ({ key, ...attempt }: Attempt) => ({
  ...attempt,
  credential: key === undefined ? "shared" : `own:${key}`,
});
