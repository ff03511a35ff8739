import { Page } from "../components/page.tsx";

export function Invoices() {
  return <Page title="Invoices">{null}</Page>;
}
