import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { useState } from "react";
import { accountQuery } from "../../api/account.ts";
import { downloadInvoice, invoiceQuery } from "../../api/invoices.ts";
import { Button } from "../../components/button.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { ManagersOnly } from "../../components/managers-only.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Select } from "../../components/select.tsx";
import { dayOf } from "../../lib/format.ts";
import { useNow } from "../../lib/time.ts";
import { BillingDialog } from "./billing-dialog.tsx";
import { Document } from "./invoice-document.tsx";

const route = getRouteApi("/invoices");
const shownMonths = 24;

const monthName = new Intl.DateTimeFormat("en-US", { month: "long", year: "numeric", timeZone: "UTC" });

/** Newest first. */
function monthsUntil(nowMs: number) {
  const now = new Date(nowMs);
  return Array.from({ length: shownMonths }, (_, back) => {
    const first = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1));
    return { value: dayOf(first).slice(0, 7), label: monthName.format(first) };
  });
}

export const Invoices = () => (
  <Page title="Invoices" intro="What was charged in a month, less refunds. Days are UTC.">
    <ManagersOnly otherwise="This key cannot see invoices">
      <Month />
    </ManagersOnly>
  </Page>
);

function Month() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const months = monthsUntil(useNow());
  const month = months.find(({ value }) => value === search.month)?.value ?? months[0]?.value ?? "";
  const download = useMutation({ mutationFn: downloadInvoice });
  const { data: account } = useQuery(accountQuery);
  const [isEditing, setEditing] = useState(false);
  return (
    <>
      <div className="flex flex-wrap items-end gap-3 print:hidden">
        <Select
          label="Month"
          className="w-56"
          value={month}
          options={months}
          onChange={(value) => void navigate({ search: { ...search, month: value } })}
        />
        <Button busy={download.isPending} onClick={() => download.mutate(month)}>
          Download CSV
        </Button>
        <Button onClick={() => window.print()}>Print or save as PDF</Button>
        <Button disabled={!account} onClick={() => setEditing(true)}>
          Billing details
        </Button>
      </div>
      {download.error && <ErrorNote error={download.error} />}
      <QueryView query={useQuery(invoiceQuery(month))}>{(invoice) => <Document invoice={invoice} />}</QueryView>
      {isEditing && account && <BillingDialog billing={account.billing} onClose={() => setEditing(false)} />}
    </>
  );
}
