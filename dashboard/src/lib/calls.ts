interface Called {
  readonly model: string | null;
  readonly endpoint: string | null;
}

/** Names what was called. Uploads have no model. */
export const calledName = ({ model, endpoint }: Called): string =>
  model ?? (endpoint === "/v1/uploads" ? "Upload" : "Unknown");
