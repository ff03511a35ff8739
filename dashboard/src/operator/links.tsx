import { Link } from "@tanstack/react-router";

export const linkClass = "font-medium text-accent-strong underline-offset-4 hover:underline wrap-anywhere";

export const AccountLink = ({ id, children }: { readonly id: string; readonly children?: string }) => (
  <Link to="/operator/accounts/$id" params={{ id }} className={linkClass}>
    {children ?? <span className="font-mono text-xs">{id}</span>}
  </Link>
);

export const RequestLink = ({ id }: { readonly id: string }) => (
  <Link to="/operator/requests/$id" params={{ id }} className={linkClass}>
    <span className="font-mono text-xs">{id}</span>
  </Link>
);

export const Id = ({ children }: { readonly children: string }) => (
  <span className="font-mono text-xs wrap-anywhere">{children}</span>
);
