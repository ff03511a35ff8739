import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { accountNameQuery } from "./account-names.ts";

export const linkClass = "font-medium text-accent-strong underline-offset-4 hover:underline wrap-anywhere";

/** Shows the account's name. */
export const AccountLink = ({ id, children }: { readonly id: string; readonly children?: string }) => (
  <Link to="/operator/accounts/$id" params={{ id }} className={linkClass} title={id}>
    {children ?? <AccountName id={id} />}
  </Link>
);

const AccountName = ({ id }: { readonly id: string }) =>
  useQuery(accountNameQuery(id)).data ?? <span className="font-mono text-xs">{id}</span>;

export const RequestLink = ({ id }: { readonly id: string }) => (
  <Link to="/operator/requests/$id" params={{ id }} className={linkClass}>
    <OneLineId>{id}</OneLineId>
  </Link>
);

/** The beginning of an id, where the width does not suffice for all of it. */
export const OneLineId = ({ children }: { readonly children: string }) => (
  <span className="inline-block max-w-36 truncate align-bottom font-mono text-xs" title={children}>
    {children}
  </span>
);

export const Id = ({ children }: { readonly children: string }) => (
  <span className="font-mono text-xs wrap-anywhere">{children}</span>
);
