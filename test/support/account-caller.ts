import { type Client, postWith } from "./service.ts";

export interface Answer<Body = Readonly<Record<string, unknown>>> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** The fields of keys, and of others' answers, that the tests read. */
export interface KeyBody {
  readonly id: string;
  readonly key: string;
  readonly data: readonly { readonly id: string; readonly [field: string]: unknown }[];
  readonly has_more: boolean;
  readonly next: string | null;
  readonly error: { readonly code: string; readonly param: string | null; readonly message: string };
  readonly budget: { readonly spent_usd: string; readonly resets_at: number | null } | null;
  readonly revoked_at: number | null;
  readonly [field: string]: unknown;
}

const askWith =
  ({ baseUrl }: Pick<Client, "baseUrl">, key: string) =>
  async (method: string, path: string, body?: unknown): Promise<Answer<KeyBody>> => {
    const response = await fetch(`${baseUrl}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as KeyBody };
  };

/** Creates a key as an operator. */
export async function keyOf(service: Client, account: string, fields: object = {}) {
  const { id, key } = await service.admin<{ id: string; key: string }>("POST", `/accounts/${account}/keys`, fields);
  return { id, key, ask: askWith(service, key), post: postWith(service.baseUrl, key) };
}

/** An account with a balance, and one of its keys with all scopes. */
export async function managedAccount(service: Client, usd = "100") {
  const account = await service.account(usd);
  return { account, ...(await keyOf(service, account.id, { scopes: ["inference", "manage"] })) };
}
