const state = globalThis as { endOfFile?: (() => void)[] };

/** For what the running test file has taken as a whole: called when everything that it started has ended. */
export const atEndOfFile = (giveBack: () => void): void => {
  state.endOfFile = [...(state.endOfFile ?? []), giveBack];
};

export function endFile(): void {
  const all = state.endOfFile ?? [];
  delete state.endOfFile;
  for (const giveBack of all) giveBack();
}
