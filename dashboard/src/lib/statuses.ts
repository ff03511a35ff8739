import { capitalized } from "./format.ts";

/** A status of the service as it is shown: `in_progress` is "In progress". */
export const statusLabel = (status: string): string => capitalized(status.replaceAll("_", " "));

/** Statuses as options of a filter. */
export const statusOptions = (statuses: readonly string[]) => [
  { value: "", label: "All" },
  ...statuses.map((value) => ({ value, label: statusLabel(value) })),
];

/** The outcomes of calls. */
export const callStatuses = statusOptions(["succeeded", "failed", "cancelled"]);
