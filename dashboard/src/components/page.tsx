import { type ReactNode, useEffect, useRef } from "react";

interface Props {
  readonly title: string;
  readonly intro?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** A screen. Its heading takes the focus when it opens, so that screen readers announce the screen. */
export function Page({ title, intro, actions, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} · Dashboard`;
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <div className="mx-auto flex w-full max-w-6xl flex-col gap-8 px-4 py-6 sm:px-8 sm:py-10">
      <header className="flex flex-wrap items-start justify-between gap-4">
        <div className="flex min-w-0 flex-col gap-1">
          <h1 ref={heading} tabIndex={-1} className="text-xl leading-10 font-semibold tracking-tight wrap-anywhere">
            {title}
          </h1>
          {intro && <p className="max-w-2xl text-pretty text-muted">{intro}</p>}
        </div>
        {actions && <div className="flex min-h-10 flex-wrap items-center gap-3">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
