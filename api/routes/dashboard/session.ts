import type { Request } from "express";
import { z } from "zod";
import { invalidApiKey, ServiceError } from "#errors";
import type { Caller, Keys } from "#keys";
import type { Money } from "#money";
import type { Logger } from "#platform/logger";
import { type Session, type Sessions, sessionLifeMs } from "#sessions";
import { addressOf, localsOf } from "../../http/headers.ts";
import { parse } from "../../http/input.ts";
import { found, type Handler, unixSeconds } from "../../http/json-routes.ts";
import type { AdminTokens } from "../admin/index.ts";

export interface SessionDeps {
  readonly sessions: Sessions;
  readonly keys: Keys;
  readonly money: Pick<Money, "account">;
  readonly tokens: AdminTokens | undefined;
  readonly publicUrl: () => string;
  readonly hasTopups: boolean;
  readonly log: Logger;
}

const cookieName = "dashboard_session";
const path = "/dashboard";

const secret = z.string().min(1).max(1_000);
const signIn = z.union(
  [z.strictObject({ key: secret }), z.strictObject({ admin_token: secret }), z.strictObject({ code: secret })],
  { error: "expected one of key, admin_token and code" },
);
type SignIn = z.infer<typeof signIn>;

/** The same for everything that does not begin a session, so that nothing is learned from it. */
const refused = () => invalidApiKey("This key, token or link does not sign in: it is unknown, expired or revoked.");
const signedOut = () => invalidApiKey("Not signed in, or the session has ended.");

/**
 * Undefined also for two cookies of this name: another host of the domain may have set one of them. The path of the cookie keeps
 * it from other routes, which do not read cookies either.
 */
function secretOf(req: Pick<Request, "headers">): string | undefined {
  const cookies = req.headers.cookie?.split(";") ?? [];
  const named = cookies.map((each) => each.trim()).filter((each) => each.startsWith(`${cookieName}=`));
  return named.length === 1 ? named[0]?.slice(cookieName.length + 1) : undefined;
}

/** A proxy that ends TLS says so, or the public address does. One who invents the header only harms his own cookie. */
const isSecure = (req: Pick<Request, "get">, publicUrl: string) =>
  publicUrl.startsWith("https:") || req.get("x-forwarded-proto")?.split(",")[0]?.trim() === "https";

/** Whom the cookie of a request stands for, as long as the key or the token is valid. */
export interface SignedIn {
  readonly session: Session;
  /** Of an account's session. */
  readonly caller?: Caller;
}

/** Throws 401 for a request without a session, or with one whose key or token is no longer valid. */
export function createIdentify({ sessions, keys, tokens }: Pick<SessionDeps, "sessions" | "keys" | "tokens">) {
  return async (req: Pick<Request, "headers">): Promise<SignedIn> => {
    const given = secretOf(req);
    const session = given === undefined ? undefined : await sessions.find(given);
    if (!session || given === undefined) throw signedOut();
    if (session.kind === "account") return { session, caller: await keys.callerOf(session.key) };
    if (!tokens?.open(session.sealed, given)) throw signedOut();
    return { session };
  };
}

export function sessionHandlers(deps: SessionDeps) {
  const { sessions, keys, money, tokens, publicUrl, log } = deps;
  const identify = createIdentify(deps);

  const cookieOptions = (req: Pick<Request, "get">) => ({
    httpOnly: true,
    secure: isSecure(req, publicUrl()),
    sameSite: "strict" as const,
    path,
  });

  const beginForAccount = (account: string, key: string) => sessions.begin(() => ({ kind: "account", account, key }));

  function beginForOperator(operator: ReturnType<AdminTokens["find"]>) {
    if (!operator) throw refused();
    return sessions.begin((newSecret) => ({
      kind: "operator",
      operator: operator.name,
      sealed: operator.seal(newSecret),
    }));
  }

  async function begin(given: SignIn) {
    if ("key" in given) {
      const { account, keyId } = await keys.authenticate(given.key);
      return beginForAccount(account, keyId);
    }
    if ("admin_token" in given) return beginForOperator(tokens?.find(given.admin_token));
    const subject = await sessions.redeemCode(given.code);
    if (!subject) throw refused();
    if (subject.kind === "operator") return beginForOperator(tokens?.open(subject.sealed, given.code));
    const { account, keyId } = await keys.callerOf(subject.key);
    return beginForAccount(account, keyId);
  }

  async function render(session: Session) {
    const { kind, expiresAt } = session;
    const common = {
      expires_at: unixSeconds(expiresAt),
      service: { public_url: publicUrl(), topups: deps.hasTopups, docs: "/docs" },
    };
    if (kind === "operator") return { object: "session", kind, operator: { name: session.operator }, ...common };
    const [{ id, name, tier, frozen }, key] = await Promise.all([
      money.account(session.account).then((account) => found(account, "account")),
      keys.get(session.account, session.key),
    ]);
    return {
      object: "session",
      kind,
      account: { id, name, tier, frozen },
      key: { id: key.id, name: key.name, prefix: key.prefix, scopes: key.scopes },
      ...common,
    };
  }

  const endOf = async (req: Pick<Request, "headers">) => {
    const given = secretOf(req);
    if (given !== undefined) await sessions.end(given);
  };

  return {
    create: async (req, res) => {
      const { requestId } = localsOf(res);
      const given = parse(signIn, req.body);
      const kind = Object.keys(given)[0];
      const address = addressOf(req);
      const succeeded = await keys.countSignIn(address, requestId);
      try {
        const begun = await begin(given);
        await Promise.all([succeeded(), endOf(req)]);
        res.cookie(cookieName, begun.secret, { ...cookieOptions(req), maxAge: sessionLifeMs });
        log.info({ requestId, with: kind, address }, "signed in");
        const session = found(await sessions.find(begun.secret), "session");
        return render(session);
      } catch (error) {
        if (!(error instanceof ServiceError) || error.status !== 401) throw error;
        log.warn({ requestId, with: kind, address }, "a sign-in was refused");
        throw refused();
      }
    },

    get: async (req) => render((await identify(req)).session),

    end: async (req, res) => {
      await endOf(req);
      res.clearCookie(cookieName, cookieOptions(req));
      return { object: "session", deleted: true };
    },
  } satisfies Record<string, Handler>;
}
