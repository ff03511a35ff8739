import { useMutation, useQuery } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import { useState } from "react";
import { connectionLost } from "../api/client.ts";
import { homes, nameOf, type Session, sessionQuery, signOut } from "../api/session.ts";
import { forget } from "../lib/kept.ts";
import { type Theme, useTheme } from "../lib/theme.ts";
import { operatorNavigation } from "../operator/navigation.ts";
import { SessionBell } from "./bell.tsx";
import { Button } from "./button.tsx";
import { classNames } from "./class-names.ts";
import { Navigation, type NavigationItem } from "./navigation.tsx";
import { Notice } from "./notice.tsx";
import { SwitchButtons } from "./switch-buttons.tsx";
import { Toasts } from "./toast.tsx";

const customer: readonly NavigationItem[] = [
  { to: "/", label: "Overview" },
  { to: "/usage", label: "Usage" },
  { to: "/requests", label: "Requests" },
  { to: "/jobs", label: "Jobs" },
  { to: "/batches", label: "Batches" },
  { to: "/keys", label: "Keys" },
  { to: "/provider-keys", label: "Provider keys" },
  { to: "/webhooks", label: "Webhooks" },
  { to: "/playground", label: "Playground" },
  { to: "/models", label: "Models" },
  { to: "/files", label: "Files" },
  { to: "/top-up", label: "Top up" },
  { to: "/statement", label: "Statement" },
  { to: "/invoices", label: "Invoices" },
];

const themes: readonly { readonly value: Theme; readonly label: string }[] = [
  { value: "system", label: "Auto" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

const outside = "flex min-h-8 items-center rounded-lg px-3 text-muted hover:bg-raised hover:text-ink";

interface Props {
  readonly session: Session;
  /** The session of the other kind, if there is one. */
  readonly other: Session | undefined;
}

function Foot({ session, other }: Props) {
  const [theme, setTheme] = useTheme();
  // Reload the page, so that it remembers nothing of the account.
  const out = useMutation({
    mutationFn: () => signOut(session.kind),
    onSuccess() {
      if (session.kind === "account") forget();
      window.location.assign(import.meta.env.BASE_URL);
    },
  });
  const who = session.kind === "account" ? session.account.name : `Operator ${session.operator.name}`;
  return (
    <div className="flex flex-col gap-4">
      <ul>
        <li>
          <a className={outside} href="/docs" target="_blank" rel="noreferrer">
            API reference ↗
          </a>
        </li>
        <li>
          <a className={outside} href="/openapi.json" target="_blank" rel="noreferrer">
            OpenAPI document ↗
          </a>
        </li>
      </ul>
      <div className="flex flex-col items-start gap-3 border-t border-line px-3 pt-4">
        <p dir="auto" title={who} className="max-w-full truncate font-medium">
          {who}
        </p>
        {other && (
          <Link to={homes[other.kind]} className="max-w-full text-accent wrap-anywhere hover:underline">
            Switch to {nameOf(other)}
          </Link>
        )}
        <SwitchButtons label="Colors" value={theme} options={themes} onChange={setTheme} />
        <Button small busy={out.isPending} onClick={() => out.mutate()}>
          Sign out
        </Button>
      </div>
    </div>
  );
}

const askAgainMs = 3000;

function Notices({ session }: { readonly session: Session }) {
  const isLost = connectionLost.use();
  useQuery({ ...sessionQuery, refetchInterval: isLost && askAgainMs });
  const isFrozen = session.kind === "account" && session.account.frozen;
  if (!isLost && !isFrozen) return null;
  return (
    <div className="mx-auto flex max-w-6xl flex-col gap-3 px-4 pt-6 sm:px-8">
      {isLost && (
        <Notice>The service cannot be reached. What you see may be old; it is asked again every few seconds.</Notice>
      )}
      {isFrozen && <Notice>This account is frozen: its calls are refused. Ask the operator to unfreeze it.</Notice>}
    </div>
  );
}

/** A sidebar on wide screens; on narrow ones a bar with a menu. */
export function Layout({ session, other }: Props) {
  const [isOpen, setOpen] = useState(false);
  const items = session.kind === "operator" ? operatorNavigation : customer;
  return (
    <div className="min-h-dvh lg:grid lg:grid-cols-[15rem_minmax(0,1fr)] print:block">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:start-3 focus:top-3 focus:z-50 focus:rounded-lg focus:bg-surface focus:p-3"
      >
        Skip to the content
      </a>
      <header className="border-line print:hidden bg-surface max-lg:sticky max-lg:top-0 max-lg:z-40 max-lg:border-b lg:border-e">
        <div className="flex flex-col lg:sticky lg:top-0 lg:h-dvh lg:overflow-y-auto lg:px-3 lg:py-6">
          <div className="flex items-center justify-between gap-3 px-4 py-2 lg:px-3 lg:pb-6">
            <p className="flex items-center gap-2.5 text-base font-semibold">
              <img src={`${import.meta.env.BASE_URL}icon.svg`} alt="" width={24} height={24} />
              Inference
            </p>
            <div className="flex items-center">
              <SessionBell session={session} />
              <Button
                className="lg:hidden"
                look="quiet"
                aria-expanded={isOpen}
                aria-controls="menu"
                onClick={() => setOpen(!isOpen)}
              >
                {isOpen ? "Close" : "Menu"}
              </Button>
            </div>
          </div>
          <div
            id="menu"
            className={classNames(
              "flex-1 flex-col justify-between gap-8 px-3 pb-5 max-lg:max-h-[calc(100dvh-3.5rem)] max-lg:overflow-y-auto lg:flex lg:px-0 lg:pb-0",
              isOpen ? "flex" : "hidden",
            )}
          >
            <nav aria-label="Screens">
              <Navigation items={items} onNavigate={() => setOpen(false)} />
            </nav>
            <Foot session={session} other={other} />
          </div>
        </div>
      </header>
      <main id="main" tabIndex={-1} className="min-w-0">
        <Notices session={session} />
        <Outlet />
      </main>
      <Toasts />
    </div>
  );
}
