import { CopyButton } from "./copy-button.tsx";

interface Props {
  readonly text: string;
  readonly what: string;
}

/** More would take the browser seconds to lay out. It is copied whole. */
const mostShown = 100_000;

/** Text to copy, in one block that scrolls. */
export function Code({ text, what }: Props) {
  return (
    <section aria-label={what} className="w-full min-w-0 rounded-xl border border-line bg-raised text-start text-ink">
      <div className="flex items-center justify-between gap-3 border-b border-line px-3 py-1.5">
        <span className="text-xs text-muted">{what}</span>
        <CopyButton text={text} what={what} look="quiet" />
      </div>
      {/* Scrolling by keyboard needs the focus. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0} className="max-h-128 overflow-auto p-3 font-mono text-xs">
        {text.length > mostShown ? `${text.slice(0, mostShown)}…` : text}
      </pre>
    </section>
  );
}
