import { useQuery } from "@tanstack/react-query";
import { createRootRoute, type ErrorComponentProps, Link, Navigate, useLocation } from "@tanstack/react-router";
import { useState } from "react";
import { request } from "./api/client.ts";
import { homes, type Kind, kindOfPath, SessionContext, sessionOf, sessionPath, sessionQuery } from "./api/session.ts";
import { buttonClass } from "./components/button.tsx";
import { classNames } from "./components/class-names.ts";
import { ErrorNote } from "./components/error-note.tsx";
import { Layout } from "./components/layout.tsx";
import { Page } from "./components/page.tsx";
import { Skeleton } from "./components/skeleton.tsx";
import { toast } from "./components/toast.tsx";
import { OtherRole } from "./screens/other-role.tsx";
import { SignIn } from "./screens/sign-in.tsx";

/** The parent of all screens: the layout for signed-in users, the sign-in page for everyone else. */

function Root() {
  const sessions = useQuery(sessionQuery);
  const path = useLocation({ select: ({ pathname }) => pathname });
  const kind = kindOfPath(path);
  const [seen, setSeen] = useState<readonly Kind[]>([]);
  const [isSigningIn, setSigningIn] = useState(false);
  if (sessions.isPending) return <Loading />;
  if (sessions.data === undefined)
    return (
      <main className="p-6">
        <ErrorNote error={sessions.error} onRetry={sessions.refetch} />
      </main>
    );
  const session = sessionOf(sessions.data, kind);
  const other = sessionOf(sessions.data, kind === "account" ? "operator" : "account");
  if (session && !seen.includes(kind)) setSeen([...seen, kind]);
  if (session && isSigningIn) setSigningIn(false);
  if (session)
    return (
      <SessionContext value={session}>
        <Layout session={session} other={other} />
      </SessionContext>
    );
  if (other && !isSigningIn && !seen.includes(kind))
    return path === homes.account ? (
      <Navigate to={homes.operator} replace />
    ) : (
      <OtherRole signedIn={other} onSignIn={() => setSigningIn(true)} />
    );
  return <SignIn kind={kind} hasEnded={seen.includes(kind)} />;
}

export const Loading = () => (
  <div className="mx-auto max-w-6xl p-8">
    <Skeleton rows={5} />
  </div>
);

const NotFound = () => (
  <Page title="There is no such page" intro="The address may be mistyped, or the page has moved.">
    <Link to="/" className={classNames(buttonClass("primary"), "self-start")}>
      Go to the overview
    </Link>
  </Page>
);

/** Only a new page retries a file that could not be loaded; without a connection there would be no page at all. */
const reload = () =>
  request(sessionPath).then(
    () => window.location.reload(),
    () => toast("The service still cannot be reached."),
  );

export const Failed = ({ error }: ErrorComponentProps) => (
  <Page title="This page failed">
    <ErrorNote error={error} onRetry={reload} />
  </Page>
);

export const rootRoute = createRootRoute({ component: Root, notFoundComponent: NotFound });
