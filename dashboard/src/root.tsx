import { useQuery } from "@tanstack/react-query";
import { createRootRoute, type ErrorComponentProps, Link } from "@tanstack/react-router";
import { sessionQuery } from "./api/session.ts";
import { buttonClass } from "./components/button.tsx";
import { ErrorNote } from "./components/error-note.tsx";
import { Layout } from "./components/layout.tsx";
import { Page } from "./components/page.tsx";
import { Skeleton } from "./components/skeleton.tsx";
import { SignIn } from "./screens/sign-in.tsx";

/** The parent of all screens: the layout for those who are signed in, the sign-in page for all others. */

function Root() {
  const session = useQuery(sessionQuery);
  if (session.isPending) return <Loading />;
  if (session.error && session.data === undefined)
    return (
      <main className="p-6">
        <ErrorNote error={session.error} onRetry={session.refetch} />
      </main>
    );
  return session.data ? <Layout session={session.data} /> : <SignIn />;
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

export const Failed = ({ error, reset }: ErrorComponentProps) => (
  <Page title="This page failed">
    <ErrorNote error={error} onRetry={reset} />
  </Page>
);

export const rootRoute = createRootRoute({ component: Root, notFoundComponent: NotFound });
