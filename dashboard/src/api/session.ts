import { queryOptions, useQuery } from "@tanstack/react-query";
import { ApiError, postJson, request } from "./client.ts";

/** Who is signed in: an account by one of its keys, or an operator. */
export type Session =
  | {
      readonly kind: "account";
      readonly account: { readonly id: string; readonly name: string };
      readonly scopes: readonly string[];
    }
  | { readonly kind: "operator"; readonly name: string };

const path = "/dashboard/session";

export const signIn = (secret: string) => postJson<Session>(path, { key: secret });
export const signInByCode = (code: string) => postJson<Session>(path, { code });
export const signOut = () => request<unknown>(path, { method: "DELETE" });

/** null: nobody is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: async (): Promise<Session | null> => {
    try {
      return await request<Session>(path);
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 404)) return null;
      throw error;
    }
  },
  staleTime: 60_000,
});

/** Screens are shown to those who are signed in only. */
export function useSession(): Session {
  const { data } = useQuery(sessionQuery);
  if (!data) throw new Error("no session");
  return data;
}

/** Whether the session's key may change the account. */
export function useCanManage(): boolean {
  const session = useSession();
  return session.kind === "account" && session.scopes.includes("manage");
}
