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
  readonly money: Pick<Money, "account">;
  readonly tokens: AdminTokens | undefined;
  readonly publicUrl: () => string;
  readonly hasTopups: boolean;
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

/**
 * Over https the cookie has a name that browsers accept only from this very host: otherwise another host of the domain could
 * sign a person in to a session of its own. Such a cookie must have the path `/`; only routes below `/dashboard` read it.
 */
const cookieOf = (req: Pick<Request, "get">, publicUrl: string) =>
  isSecure(req, publicUrl)
    ? { name: "__Host-dashboard_session", secure: true, path: "/" }
    : { name: "dashboard_session", secure: false, path: "/dashboard" };

/** Returns undefined if there are two cookies of this name: without https, another host may have set one of them. */
function secretOf(req: Pick<Request, "get">, publicUrl: string): string | undefined {
  const { name } = cookieOf(req, publicUrl);
  const cookies = req.get("cookie")?.split(";") ?? [];
  const named = cookies.map((each) => each.trim()).filter((each) => each.startsWith(`${name}=`));
  return named.length === 1 ? named[0]?.slice(name.length + 1) : undefined;
}

/** The owner of a request's session, whose key or token is valid. */
export interface SignedIn {
  readonly session: Session;
  /** Set for the session of an account. */
  readonly caller?: Caller;
}

/** Throws 401 for a request without a session, or with one whose key or token is no longer valid. */
export function createIdentify(deps: Pick<SessionDeps, "sessions" | "keys" | "tokens" | "publicUrl">) {
  const { sessions, keys, tokens, publicUrl } = deps;
  return async (req: Pick<Request, "get">): Promise<SignedIn> => {
    const given = secretOf(req, publicUrl());
    const session = given === undefined ? undefined : await sessions.find(given);
    if (!session || given === undefined) throw signedOut();
    if (session.kind === "account") return { session, caller: await keys.callerOf(session.key) };
    if (!tokens?.open(session.sealed, given)) throw signedOut();
    return { session };
  };
}

const sessionObject = fields({
  object: tag("session"),
  kind: z.enum(["account", "operator"]),
  operator: z.object({ name: z.string() }).optional(),
  account: keyAccount.optional(),
  key: z
    .object({ id: z.string(), name: z.string().nullable(), prefix: z.string(), scopes: z.array(z.enum(scopes)) })
    .optional(),
  expires_at: unixSeconds,
  service: fields({ public_url: z.string(), topups: z.boolean(), docs: z.string() }),
});

const hidden = { httpOnly: true, sameSite: "strict" } as const;

const beginForAccount = ({ sessions }: SessionDeps, account: string, key: string) =>
  sessions.begin(() => ({ kind: "account", account, key }));

function beginForOperator({ sessions }: SessionDeps, operator: ReturnType<AdminTokens["find"]>) {
  if (!operator) throw refused();
  return sessions.begin((newSecret) => ({
    kind: "operator",
    operator: operator.name,
    sealed: operator.seal(newSecret),
  }));
}

async function begin(deps: SessionDeps, given: SignIn) {
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

async function show({ keys, money, publicUrl, hasTopups }: SessionDeps, session: Session) {
  const { kind, expiresAt } = session;
  const common = { kind, expiresAt, service: { publicUrl: publicUrl(), topups: hasTopups, docs: "/docs" } };
  if (session.kind === "operator") return { ...common, operator: { name: session.operator } };
  const [account, key] = await Promise.all([
    money.account(session.account).then((one) => found(one, "account")),
    keys.get(session.account, session.key),
  ]);
  return { ...common, account, key };
}

async function endOf({ sessions, publicUrl }: SessionDeps, req: Pick<Request, "get">): Promise<void> {
  const given = secretOf(req, publicUrl());
  if (given !== undefined) await sessions.end(given);
}

async function signInto(
  deps: SessionDeps,
  { body, req, res }: Pick<RouteCall<void, unknown, unknown, SignIn>, "body" | "req" | "res">,
) {
  const { sessions, keys, publicUrl, log } = deps;
  const { requestId } = localsOf(res);
  const kind = Object.keys(body)[0];
  const address = addressOf(req);
  const succeeded = await keys.countSignIn(address, requestId);
  try {
    const begun = await begin(deps, body);
    await Promise.all([succeeded(), endOf(deps, req)]);
    const { name, ...options } = cookieOf(req, publicUrl());
    res.cookie(name, begun.secret, { ...hidden, ...options, maxAge: sessionLifeMs });
    log.info({ requestId, with: kind, address }, "signed in");
    return await show(deps, found(await sessions.find(begun.secret), "session"));
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status !== 401) throw error;
    log.warn({ requestId, with: kind, address }, "a sign-in was refused");
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
    summary: "The session of the request's cookie",
    answers: { 200: "The session" },
    answer: sessionObject,
    handle: async (deps, { req }) => show(deps, (await createIdentify(deps)(req)).session),
  }),
  route({
    method: "delete",
    path: "/session",
    operationId: "endSession",
    summary: "Sign out; copies of the cookie also become invalid",
    answers: { 200: "The session has ended" },
    answer: fields({ object: tag("session"), deleted: z.literal(true) }),
    async handle(deps, { req, res }) {
      await endOf(deps, req);
      const { name, ...options } = cookieOf(req, deps.publicUrl());
      res.clearCookie(name, { ...hidden, ...options });
      return { deleted: true as const };
    },
  }),
];
