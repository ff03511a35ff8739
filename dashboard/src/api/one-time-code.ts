import { queryClient } from "./query-client.ts";
import { sessionQuery, signInByCode } from "./session.ts";

const errorKey = ["one-time code"];

/** The error of the link's code, if it did not sign in. */
export const codeError = (): Error | undefined => queryClient.getQueryData<Error>(errorKey);

/**
 * Signs in with the one-time code of a link to one of the pages, replacing a session of the same kind. The code is in the
 * fragment, which no server sees and no log has, and is removed from the address first.
 */
export async function redeemCode(): Promise<void> {
  const code = new URLSearchParams(window.location.hash.slice(1)).get("code");
  if (!code) return;
  window.history.replaceState(null, "", window.location.pathname);
  try {
    queryClient.setQueryData(sessionQuery.queryKey, await signInByCode(code));
  } catch (error) {
    queryClient.setQueryData(errorKey, error);
  }
}
