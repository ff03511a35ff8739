import { createStore } from "../lib/store.ts";

interface Message {
  readonly id: number;
  readonly text: string;
}

const shownMs = 5000;
const messages = createStore<readonly Message[]>([]);
const numbers = { last: 0 };

/** Shows a short confirmation, which screen readers announce. */
export function toast(text: string): void {
  numbers.last += 1;
  const { last: id } = numbers;
  messages.set([...messages.get(), { id, text }]);
  window.setTimeout(() => messages.set(messages.get().filter((message) => message.id !== id)), shownMs);
}

export const Toasts = () => (
  <div
    aria-live="polite"
    className="pointer-events-none fixed inset-x-0 bottom-4 z-50 flex flex-col items-center gap-2 px-4"
  >
    {messages.use().map(({ id, text }) => (
      <p key={id} className="max-w-full rounded-lg bg-ink px-4 py-2.5 wrap-anywhere text-page shadow-lg">
        {text}
      </p>
    ))}
  </div>
);
