/** A status of the service as it is shown: `in_progress` is "In progress". */
export function statusLabel(status: string): string {
  const words = status.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Statuses as options of a filter. */
export const statusOptions = (statuses: readonly string[]) => [
  { value: "", label: "All" },
  ...statuses.map((value) => ({ value, label: statusLabel(value) })),
];

/** The outcomes of calls. */
export const callStatuses = statusOptions(["succeeded", "failed", "cancelled"]);
