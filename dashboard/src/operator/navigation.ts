import type { NavigationItem } from "../components/navigation.tsx";

/** The sidebar entries of an operator. */
export const operatorNavigation: readonly NavigationItem[] = [
  { to: "/operator", label: "Overview" },
  { to: "/operator/accounts", label: "Accounts" },
  { to: "/operator/usage", label: "Usage" },
  { to: "/operator/requests", label: "Requests" },
  { to: "/operator/jobs", label: "Jobs" },
  { to: "/operator/batches", label: "Batches" },
  { to: "/operator/webhooks", label: "Webhooks" },
  { to: "/operator/money", label: "Money" },
  { to: "/operator/workers", label: "Workers" },
  { to: "/operator/catalog", label: "Catalog" },
  { to: "/operator/audit", label: "Audit log" },
];
