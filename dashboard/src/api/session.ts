import { queryOptions } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { postJson, request } from "./client.ts";

interface Service {
  readonly public_url: string;
  readonly topups: boolean;
  readonly buybacks: { readonly bps: number; readonly executed: boolean };
  readonly docs: string;
  /** Those of a key that has none of its own. */
  readonly rate_limits: Readonly<Record<"requests_per_minute" | "tokens_per_minute" | "concurrent_requests", number>>;
}

interface Account {
  readonly id: string;
  readonly name: string;
  readonly tier: "standard" | "elite";
  readonly frozen: boolean;
  /** True if its webhook endpoints receive events of upstreams. */
  readonly operator_events: boolean;
}

interface SessionKey {
  readonly id: string;
  readonly name: string | null;
  readonly prefix: string;
  readonly scopes: readonly string[];
}

/** The sessions of this browser: one person can be signed in as an account and as an operator at once. */
export interface Sessions {
  readonly account: (Account & { readonly key: SessionKey }) | null;
  readonly operator: { readonly name: string } | null;
  readonly service: Service;
}

interface AccountSession {
  readonly kind: "account";
  readonly account: Account;
  readonly key: SessionKey;
  readonly service: Service;
}

interface OperatorSession {
  readonly kind: "operator";
  readonly operator: { readonly name: string };
  readonly service: Service;
}

export type Session = AccountSession | OperatorSession;
export type Kind = Session["kind"];

/** The kind of session that a page needs, by its path below the dashboard's. */
export const kindOfPath = (path: string): Kind => (/^\/operator(\/|$)/.test(path) ? "operator" : "account");

/** The first page of each kind of session. */
export const homes = { account: "/", operator: "/operator" } as const;

export function sessionOf({ account, operator, service }: Sessions, kind: Kind): Session | undefined {
  if (kind === "account") return account ? { kind, account, key: account.key, service } : undefined;
  return operator ? { kind, operator, service } : undefined;
}

export const nameOf = (session: Session): string =>
  session.kind === "account" ? `the account ${session.account.name}` : `the operator ${session.operator.name}`;

export const sessionPath = "/dashboard/session";

export const kindOf = (secret: string): Kind => (secret.startsWith("live_") ? "account" : "operator");
export const signIn = (secret: string) =>
  postJson<Sessions>(sessionPath, kindOf(secret) === "account" ? { key: secret } : { admin_token: secret });
export const signInByCode = (code: string) => postJson<Sessions>(sessionPath, { code });
export const signOut = (kind: Kind) => request<unknown>(`${sessionPath}?kind=${kind}`, { method: "DELETE" });

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => request<Sessions>(sessionPath),
  staleTime: 60_000,
});

/** The session for the screens, which only a signed-in user sees. */
export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("no session");
  return session;
}

/** The session of a customer's screen. */
export function useAccountSession(): AccountSession {
  const session = useSession();
  if (session.kind !== "account") throw new Error("Sign in with a key of an account to see this page.");
  return session;
}

/** True if the session's key may change the account. */
export function useCanManage(): boolean {
  const session = useSession();
  return session.kind === "account" && session.key.scopes.includes("manage");
}
