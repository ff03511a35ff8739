import type { Request } from "express";
import { z } from "zod";
import { invalidApiKey, ServiceError } from "#errors";
import { scopes } from "#key-records";
import type { Caller, Keys } from "#keys";
import type { Money } from "#money";
import type { Uses } from "#platform/uses";
import { type Session, type Sessions, sessionLifeMs } from "#sessions";
import { fields, tag, unixSeconds } from "../../http/fields.ts";
import { addressOf, localsOf } from "../../http/headers.ts";
import { found } from "../../http/page.ts";
import { type RouteCall, routeOf } from "../../http/route.ts";
import type { AdminTokens } from "../admin/index.ts";
import { keyAccount } from "../key-object.ts";

export interface SessionDeps extends Uses<"log"> {
  readonly sessions: Sessions;
  readonly keys: Keys;
  readonly money: Money;
  readonly tokens: AdminTokens | undefined;
  readonly publicUrl: () => string;
  readonly hasTopups: boolean;
  readonly buybacks: { readonly bps: number; readonly executor: string };
  /** The account whose webhook endpoints receive the operator's events. */
  readonly operatorAccount: string | undefined;
}

const secret = z.string().min(1).max(1_000);
const signIn = z.union(
  [z.strictObject({ key: secret }), z.strictObject({ admin_token: secret }), z.strictObject({ code: secret })],
  { error: "expected one of key, admin_token and code" },
);
type SignIn = z.infer<typeof signIn>;

/** Use one message for every failed sign-in, so it reveals nothing. */
const refused = () =>
  invalidApiKey("This key, token or link cannot be used to sign in: it is unknown, expired or revoked.");
const signedOut = () => invalidApiKey("Not signed in, or the session has ended.");

/**
 * Returns true if a proxy that ends TLS, or the public address, says so. A forged header only weakens the sender's own
 * cookie.
 */
const isSecure = (req: Pick<Request, "get">, publicUrl: string) =>
  publicUrl.startsWith("https:") || req.get("x-forwarded-proto")?.split(",")[0]?.trim() === "https";

type Kind = Session["kind"];

/** A person can be signed in as an account and as an operator at once. */
const cookieNames = { account: "dashboard_session", operator: "dashboard_operator_session" } as const;

/**
 * Over https the cookie has a name that browsers accept only from this very host: otherwise another host of the domain could
 * sign a person in to a session of its own. Such a cookie must have the path `/`; only routes below `/dashboard` read it.
 */
const cookieOf = (kind: Kind, req: Pick<Request, "get">, publicUrl: string) =>
  isSecure(req, publicUrl)
    ? { name: `__Host-${cookieNames[kind]}`, secure: true, path: "/" }
    : { name: cookieNames[kind], secure: false, path: "/dashboard" };

/** Returns undefined if there are two cookies of this name: without https, another host may have set one of them. */
function secretOf(kind: Kind, req: Pick<Request, "get">, publicUrl: string): string | undefined {
  const { name } = cookieOf(kind, req, publicUrl);
  const cookies = req.get("cookie")?.split(";") ?? [];
  const named = cookies.map((each) => each.trim()).filter((each) => each.startsWith(`${name}=`));
  return named.length === 1 ? named[0]?.slice(name.length + 1) : undefined;
}

/** The secrets of a request's sessions. */
const secretsOf = (req: Pick<Request, "get">, publicUrl: string) => ({
  account: secretOf("account", req, publicUrl),
  operator: secretOf("operator", req, publicUrl),
});

type AccountSession = Extract<Session, { kind: "account" }> & { readonly caller: Caller };
type OperatorSession = Extract<Session, { kind: "operator" }>;

/** Finds sessions by their secrets. Throws 401 if there is none, or if its key or token is no longer valid. */
function createFindSession({ sessions, keys, tokens }: Pick<SessionDeps, "sessions" | "keys" | "tokens">) {
  const find = async (secret: string | undefined) => (secret === undefined ? undefined : await sessions.find(secret));
  return {
    async account(secret: string | undefined): Promise<AccountSession> {
      const session = await find(secret);
      if (session?.kind !== "account") throw signedOut();
      return { ...session, caller: await keys.callerOf(session.key) };
    },
    async operator(secret: string | undefined): Promise<OperatorSession> {
      const session = await find(secret);
      if (session?.kind !== "operator" || !tokens?.open(session.sealed, secret ?? "")) throw signedOut();
      return session;
    },
  };
}

/** Finds the session of a request's cookie, as `createFindSession` does by its secret. */
export function createIdentify(deps: Pick<SessionDeps, "sessions" | "keys" | "tokens" | "publicUrl">) {
  const find = createFindSession(deps);
  const { publicUrl } = deps;
  return {
    account: (req: Pick<Request, "get">) => find.account(secretOf("account", req, publicUrl())),
    operator: (req: Pick<Request, "get">) => find.operator(secretOf("operator", req, publicUrl())),
  };
}

const sessionObject = fields({
  object: tag("session"),
  account: fields({
    ...keyAccount.shape,
    key: z.object({ id: z.string(), name: z.string().nullable(), prefix: z.string(), scopes: z.array(z.enum(scopes)) }),
    /** True if its webhook endpoints receive the operator's events. */
    operator_events: z.boolean(),
    expires_at: unixSeconds,
  }).nullable(),
  operator: fields({ name: z.string(), expires_at: unixSeconds }).nullable(),
  service: fields({
    public_url: z.string(),
    topups: z.boolean(),
    /** The share of each charge that buys tokens, and whether something buys them. */
    buybacks: fields({ bps: z.int(), executed: z.boolean() }),
    docs: z.string(),
    /** Those of a key that has none of its own. */
    rate_limits: fields({
      requests_per_minute: z.int(),
      tokens_per_minute: z.int(),
      concurrent_requests: z.int(),
    }),
  }),
});

const hidden = { httpOnly: true, sameSite: "strict" } as const;

interface Begun {
  readonly kind: Kind;
  readonly secret: string;
}

async function beginForAccount({ sessions }: SessionDeps, account: string, key: string): Promise<Begun> {
  const { secret: newSecret } = await sessions.begin(() => ({ kind: "account", account, key }));
  return { kind: "account", secret: newSecret };
}

async function beginForOperator({ sessions }: SessionDeps, operator: ReturnType<AdminTokens["find"]>): Promise<Begun> {
  if (!operator) throw refused();
  const { secret: newSecret } = await sessions.begin((sealing) => ({
    kind: "operator",
    operator: operator.name,
    sealed: operator.seal(sealing),
  }));
  return { kind: "operator", secret: newSecret };
}

async function begin(deps: SessionDeps, given: SignIn): Promise<Begun> {
  const { sessions, keys, tokens } = deps;
  if ("key" in given) {
    const { account, keyId } = await keys.authenticate(given.key);
    return beginForAccount(deps, account, keyId);
  }
  if ("admin_token" in given) return beginForOperator(deps, tokens?.find(given.admin_token));
  const subject = await sessions.redeemCode(given.code);
  if (!subject) throw refused();
  if (subject.kind === "operator") return beginForOperator(deps, tokens?.open(subject.sealed, given.code));
  const { account, keyId } = await keys.callerOf(subject.key);
  return beginForAccount(deps, account, keyId);
}

type Secrets = ReturnType<typeof secretsOf>;

/** Both sessions of a browser; null in place of one that does not exist or has ended. */
async function show(deps: SessionDeps, secrets: Secrets) {
  const { keys, money, publicUrl, hasTopups, buybacks } = deps;
  const find = createFindSession(deps);
  async function showAccount() {
    const { account: id, key: keyId, expiresAt } = await find.account(secrets.account);
    const [account, key] = await Promise.all([
      money.account(id).then((one) => found(one, "account")),
      keys.get(id, keyId),
    ]);
    return { ...account, key, operatorEvents: id === deps.operatorAccount, expiresAt };
  }
  const [account, operator] = await Promise.all([
    showAccount().catch(ended),
    find.operator(secrets.operator).then(({ operator: name, expiresAt }) => ({ name, expiresAt }), ended),
  ]);
  const { bps, executor } = buybacks;
  const service = {
    publicUrl: publicUrl(),
    topups: hasTopups,
    buybacks: { bps, executed: bps > 0 && executor !== "record" },
    docs: "/docs",
    rateLimits: keys.defaultLimits,
  };
  return { account, operator, service };
}

/** The key or token is no longer valid, or the account no longer exists. */
function ended(error: unknown): null {
  if (error instanceof ServiceError && (error.status === 401 || error.status === 404)) return null;
  throw error;
}

async function end({ sessions }: SessionDeps, secret: string | undefined): Promise<void> {
  if (secret !== undefined) await sessions.end(secret);
}

async function signInto(
  deps: SessionDeps,
  { body, req, res }: Pick<RouteCall<void, unknown, unknown, SignIn>, "body" | "req" | "res">,
) {
  const { keys, publicUrl, log } = deps;
  const { requestId } = localsOf(res);
  const credential = Object.keys(body)[0];
  const address = addressOf(req);
  const succeeded = await keys.countSignIn(address, requestId);
  try {
    const { kind, secret } = await begin(deps, body);
    const secrets = secretsOf(req, publicUrl());
    await Promise.all([succeeded(), end(deps, secrets[kind])]);
    const { name, ...options } = cookieOf(kind, req, publicUrl());
    res.cookie(name, secret, { ...hidden, ...options, maxAge: sessionLifeMs });
    log.info({ requestId, with: credential, address }, "signed in");
    return await show(deps, { ...secrets, [kind]: secret });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status !== 401) throw error;
    log.warn({ requestId, with: credential, address }, "a sign-in was refused");
    throw refused();
  }
}

const route = routeOf<SessionDeps, void>();

export const sessionRoutes = [
  route({
    method: "post",
    path: "/session",
    operationId: "createSession",
    summary: "Sign in",
    body: signIn,
    answers: { 200: "The session, with its cookie" },
    answer: sessionObject,
    handle: signInto,
  }),
  route({
    method: "get",
    path: "/session",
    operationId: "getSession",
    summary: "The sessions of the request's cookies",
    answers: { 200: "The sessions; null for each that does not exist" },
    answer: sessionObject,
    handle: (deps, { req }) => show(deps, secretsOf(req, deps.publicUrl())),
  }),
  route({
    method: "delete",
    path: "/session",
    operationId: "endSession",
    summary: "Sign out; copies of the cookie also become invalid",
    query: { kind: z.enum(["account", "operator"]) },
    answers: { 200: "The session has ended" },
    answer: fields({ object: tag("session"), deleted: z.literal(true) }),
    async handle(deps, { query: { kind }, req, res }) {
      await end(deps, secretOf(kind, req, deps.publicUrl()));
      const { name, ...options } = cookieOf(kind, req, deps.publicUrl());
      res.clearCookie(name, { ...hidden, ...options });
      return { deleted: true as const };
    },
  }),
];
