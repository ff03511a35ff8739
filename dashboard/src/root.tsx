import { useQuery } from "@tanstack/react-query";
import { createRootRoute, type ErrorComponentProps, Link } from "@tanstack/react-router";
import { useState } from "react";
import { request } from "./api/client.ts";
import { SessionContext, sessionPath, sessionQuery } from "./api/session.ts";
import { buttonClass } from "./components/button.tsx";
import { ErrorNote } from "./components/error-note.tsx";
import { Layout } from "./components/layout.tsx";
import { Page } from "./components/page.tsx";
import { Skeleton } from "./components/skeleton.tsx";
import { toast } from "./components/toast.tsx";
import { SignIn } from "./screens/sign-in.tsx";

/** The parent of all screens: the layout for signed-in users, the sign-in page for everyone else. */

function Root() {
  const session = useQuery(sessionQuery);
  const [wasSignedIn, setWasSignedIn] = useState(false);
  if (session.data && !wasSignedIn) setWasSignedIn(true);
  if (session.isPending) return <Loading />;
  if (session.error && session.data === undefined)
    return (
      <main className="p-6">
        <ErrorNote error={session.error} onRetry={session.refetch} />
      </main>
    );
  if (!session.data) return <SignIn hasEnded={wasSignedIn} />;
  return (
    <SessionContext value={session.data}>
      <Layout session={session.data} />
    </SessionContext>
  );
}

export const Loading = () => (
  <div className="mx-auto max-w-6xl p-8">
    <Skeleton rows={5} />
  </div>
);

const NotFound = () => (
  <Page title="There is no such page" intro="The address may be mistyped, or the page has moved.">
    <Link to="/" className={buttonClass("primary")}>
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
