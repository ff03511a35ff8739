import { isIP } from "node:net";
import { z } from "zod";
import { address, between, secret, text } from "./fields.ts";

/** Accepts an address or a CIDR block. A block of all addresses would trust every caller. */
const isNetwork = (entry: string): boolean => {
  const [at = "", bits, ...more] = entry.trim().split("/");
  const version = isIP(at);
  const isLength = bits === undefined || (/^[1-9]\d{0,2}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
  return version !== 0 && isLength && more.length === 0;
};
const networks = text.refine(
  (given) => given.split(",").every(isNetwork),
  "must be addresses or CIDR blocks, other than /0, separated by commas",
);

/** Addresses, tokens and secrets of the service, receivers of webhooks, and the catalog. */
export const service = {
  HOST: text.default("0.0.0.0").describe("Address that the API listens on"),
  PORT: between("Port of the API; 0 picks any free port", 0, 65535, 8080),
  METRICS_PORT: z.coerce
    .number()
    .int()
    .min(0)
    .max(65535)
    .optional()
    .describe(
      "Port of each process for `/metrics` and, in a worker, `/livez` and `/readyz`; 0 picks any free port. Default: 9464, or any free port if another process uses it",
    ),
  METRICS_HOST: text.default("127.0.0.1").describe("Address that METRICS_PORT listens on"),
  TRUSTED_PROXIES: networks
    .optional()
    .describe(
      "Proxies in front of the API, as a comma-separated list of addresses or CIDR blocks. The caller's address, by which sign-ins and requests without a key are limited, is the last one in `X-Forwarded-For` that is not a proxy's. If unset, the header is ignored and the connection's address is used",
    ),
  PUBLIC_URL: address
    .optional()
    .describe("Address of the API as callers reach it, used in absolute links. Default: http://127.0.0.1:PORT"),
  INVOICE_ISSUER: text
    .max(1_000)
    .optional()
    .describe(
      "Who issues the invoices of accounts: name, address and tax number of the operator. Semicolons separate lines. If unset, invoices have no issuer and no number",
    ),
  OPERATOR_ACCOUNT: text
    .max(100)
    .optional()
    .describe(
      "Id of the account whose webhook endpoints receive the events about upstreams: `upstream.down`, `upstream.key_refused` and `upstream.recovered`. Operators see these in the dashboard in any case",
    ),
  ADMIN_TOKEN: z
    .string()
    .regex(/^[^,]{32,}(,[^,]{32,})?$/, "must have at least 32 characters, or be two such tokens, separated by a comma")
    .optional()
    .describe(
      "Bearer token of the operator `admin` for the admin interface, at least 32 characters. If neither this nor ADMIN_TOKENS is set, the interface responds with 404. During a rotation it may be two tokens separated by a comma; both are accepted",
    )
    .meta(secret),
  ADMIN_TOKENS: z
    .string()
    .regex(
      /^[\w.-]{1,64}:[^,\s]{32,}(,[\w.-]{1,64}:[^,\s]{32,})*$/,
      "must be name:token,name:token, with tokens of at least 32 characters",
    )
    .optional()
    .describe(
      "Bearer tokens of individual operators, `name:token,name:token`. The audit log records changes under these names; `admin` is reserved for ADMIN_TOKEN",
    )
    .meta(secret),
  SECRETS_PUBLIC_KEY: z
    .string()
    .regex(/^[A-Za-z0-9+/]{43}=$/, "must be 32 bytes in base64")
    .optional()
    .describe(
      "Public key with which the API seals secrets of customers, such as those of webhooks: 32 bytes in base64, printed by `npm run config -- keys` together with its private key. If unset, features that store such secrets respond with 501",
    ),
  SECRETS_PRIVATE_KEYS: z
    .string()
    .regex(/^[A-Za-z0-9+/]{43}=(,[A-Za-z0-9+/]{43}=)?$/, {
      error: "must be 32 bytes in base64, or two such keys, separated by a comma",
    })
    .optional()
    .describe(
      "Private key with which workers open those secrets: 32 bytes in base64. After a rotation it may be two keys, `new,old`",
    )
    .meta(secret),
  WEBHOOK_ALLOWED_NETWORKS: networks
    .optional()
    .describe(
      "Private networks to which webhooks may be sent, for development and for receivers inside, as a comma-separated list of addresses or CIDR blocks: there, http and any port are allowed. If unset, webhooks are sent to public addresses only",
    ),
  WEBHOOK_PROXY_URL: z
    .url({ protocol: /^https?$/, abort: true })
    .regex(/^[^:]+:\/\/[^/?#]+\/?$/, "must be a URL without a path")
    .optional()
    .describe(
      "HTTP proxy through which workers send all webhooks, by CONNECT with the receiver's name. It has to refuse addresses that are not public; the URLs are still checked here. Not together with WEBHOOK_ALLOWED_NETWORKS",
    )
    .meta(secret),
  CATALOG_FILE: text.optional().describe("File with the catalog of models; default: the one shipped in shared/catalog"),
  CATALOG_OVERLAY: text
    .optional()
    .describe("JSON file that is merged into the catalog by id, to change prices or to add, change and remove models"),
  LOCAL_MODELS: z
    .stringbool()
    .default(false)
    .describe(
      "`on`: serve the `local/...` models, which run inside the workers and are meant for trying out the service; `npm start` sets it. Otherwise they are not listed, and calls to them get a 404. API and workers need the same value",
    ),
};
