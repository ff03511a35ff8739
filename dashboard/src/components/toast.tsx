import { useSyncExternalStore } from "react";

interface Message {
  readonly id: number;
  readonly text: string;
}

const shownMs = 5000;
const listeners = new Set<() => void>();
const state: { messages: readonly Message[]; last: number } = { messages: [], last: 0 };

function set(messages: readonly Message[]) {
  state.messages = messages;
  for (const notify of listeners) notify();
}

/** Says shortly what was done; screen readers read it. */
export function toast(text: string): void {
  state.last += 1;
  const { last: id } = state;
  set([...state.messages, { id, text }]);
  window.setTimeout(() => set(state.messages.filter((message) => message.id !== id)), shownMs);
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function Toasts() {
  const messages = useSyncExternalStore(subscribe, () => state.messages);
  return (
    <div
      aria-live="polite"
      className="pointer-events-none fixed inset-x-0 bottom-4 z-50 flex flex-col items-center gap-2 px-4"
    >
      {messages.map(({ id, text }) => (
        <p key={id} className="rounded-lg bg-ink px-4 py-2.5 text-page shadow-lg">
          {text}
        </p>
      ))}
    </div>
  );
}
