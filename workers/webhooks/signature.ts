import { createHmac } from "node:crypto";

const prefix = "whsec_";

/**
 * The value of `webhook-signature`: one signature for each secret, `whsec_` and base64
 * (https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md). `timestamp`: Unix seconds.
 */
export const sign = (secrets: readonly string[], id: string, timestamp: number, body: string): string =>
  secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(prefix.length), "base64");
      return `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
    })
    .join(" ");
