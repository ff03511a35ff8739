/** The path of a model's method, below the version. */
export const methodOf = (model: string, method: string): string =>
  `/models/${encodeURIComponent(model.replace(/^models\//, ""))}:${method}`;
