import { queryOptions } from "@tanstack/react-query";
import { createContext, useContext } from "react";
import { ApiError, postJson, request } from "./client.ts";

/** The signed-in user: an account, by one of its keys, or an operator. */
export type Session = (
  | {
      readonly kind: "account";
      readonly account: {
        readonly id: string;
        readonly name: string;
        readonly tier: "standard" | "elite";
        readonly frozen: boolean;
      };
      readonly key: {
        readonly id: string;
        readonly name: string | null;
        readonly prefix: string;
        readonly scopes: readonly string[];
      };
    }
  | { readonly kind: "operator"; readonly operator: { readonly name: string } }
) & {
  readonly service: { readonly public_url: string; readonly topups: boolean; readonly docs: string };
};

type AccountSession = Extract<Session, { kind: "account" }>;

export const sessionPath = "/dashboard/session";

export const signIn = (secret: string) =>
  postJson<Session>(sessionPath, secret.startsWith("live_") ? { key: secret } : { admin_token: secret });
export const signInByCode = (code: string) => postJson<Session>(sessionPath, { code });
export const signOut = () => request<unknown>(sessionPath, { method: "DELETE" });

/** null means that nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async (): Promise<Session | null> => {
    try {
      return await request<Session>(sessionPath);
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

/** The session for the screens, which only a signed-in user sees. The query may report its end first. */
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
