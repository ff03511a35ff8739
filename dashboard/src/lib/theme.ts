import { useState } from "react";

export type Theme = "system" | "light" | "dark";
const stored = "dashboard-theme";

function read(): Theme {
  const value = localStorage.getItem(stored);
  return value === "light" || value === "dark" ? value : "system";
}

/** Applies the theme; called before the first paint. */
export function applyTheme(theme: Theme = read()): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, set] = useState(read);
  return [
    theme,
    (next) => {
      if (next === "system") localStorage.removeItem(stored);
      else localStorage.setItem(stored, next);
      applyTheme(next);
      set(next);
    },
  ];
}
