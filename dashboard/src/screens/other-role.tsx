import { Link } from "@tanstack/react-router";
import { useEffect } from "react";
import { homes, nameOf, type Session } from "../api/session.ts";
import { Button, buttonClass } from "../components/button.tsx";

const texts = {
  account: {
    title: "This page is for operators",
    home: "Go to the account's overview",
    signIn: "Sign in as the operator",
  },
  operator: {
    title: "This page is for accounts",
    home: "Go to the operator's overview",
    signIn: "Sign in with an API key",
  },
} as const;

interface Props {
  readonly signedIn: Session;
  readonly onSignIn: () => void;
}

/** Shown in place of a page that needs a session of the other kind. */
export function OtherRole({ signedIn, onSignIn }: Props) {
  const { title, home, signIn } = texts[signedIn.kind];
  useEffect(() => {
    document.title = `${title} · Dashboard`;
  }, [title]);
  return (
    <main className="grid min-h-dvh place-items-center p-4">
      <div className="flex w-full max-w-sm flex-col gap-6">
        <div className="flex flex-col gap-1">
          <h1 className="text-xl font-semibold tracking-tight">{title}</h1>
          <p className="wrap-anywhere text-muted">
            You are signed in as {nameOf(signedIn)}, and stay so if you sign in here as well.
          </p>
        </div>
        <div className="flex flex-wrap gap-3">
          <Link to={homes[signedIn.kind]} className={buttonClass("primary")}>
            {home}
          </Link>
          <Button onClick={onSignIn}>{signIn}</Button>
        </div>
      </div>
    </main>
  );
}
