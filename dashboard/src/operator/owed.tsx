import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { queryClient } from "../api/query-client.ts";
import { Button } from "../components/button.tsx";
import { FormDialog } from "../components/dialog.tsx";
import { Field, UsdField } from "../components/field.tsx";
import { Money } from "../components/money.tsx";
import { Notice } from "../components/notice.tsx";
import { Section } from "../components/section.tsx";
import { Time } from "../components/time.tsx";
import { toast } from "../components/toast.tsx";
import { useNow } from "../lib/time.ts";
import { usdText } from "../lib/usd.ts";
import { admin, type Owed as Payment } from "./api.ts";
import { AccountLink, Id } from "./links.tsx";
import { Nothing } from "./overview-parts.tsx";
import { PagedTable } from "./paged-table.tsx";
import { Reason } from "./reason.tsx";

const limit = 20;
const totalKey = ["admin", "owed-total"];

/** Unused payments of x402 payers, and their refunds. */
export function Owed() {
  const [refunded, refund] = useState<Payment>();
  const total = useQuery({
    queryKey: totalKey,
    queryFn: ({ signal }) => unwrap(admin.GET("/owed/total", { signal })),
  });
  return (
    <Section title="Owed to payers" note={total.data && total.data.payments > 0 && <Money usd={total.data.owed_usd} />}>
      <PagedTable
        caption="Owed to payers"
        queryKey={["owed"]}
        read={(after, signal) =>
          unwrap(admin.GET("/owed", { params: { query: { limit, ...(after && { after }) } }, signal }))
        }
        rowKey={({ id }) => id}
        columns={[
          { header: "Paid", cell: ({ paid_at: at }) => <Time at={at} /> },
          { header: "Payment", cell: ({ id, account }) => <AccountLink id={account}>{id}</AccountLink> },
          { header: "Payer", cell: ({ payer }) => (payer === null ? "–" : <Id>{payer}</Id>) },
          { header: "Expires", cell: ({ good_until: at }) => <Time at={at} />, numeric: true },
          { header: "Paid amount", usd: ({ paid_usd: usd }) => usd },
          { header: "Owed", usd: ({ owed_usd: usd }) => usd },
          {
            header: "",
            cell: (payment) => (
              <Button small onClick={() => refund(payment)} aria-label={`Record a refund of ${payment.id}`}>
                Record a refund
              </Button>
            ),
            numeric: true,
          },
        ]}
        empty={
          <Nothing title="Nothing is owed">
            What x402 payers paid and did not use is listed here, to be paid back.
          </Nothing>
        }
      />
      {refunded && <Refund payment={refunded} onClose={() => refund(undefined)} />}
    </Section>
  );
}

/** Records an on-chain transfer. A transaction is recorded once, however often it is sent. */
function Refund({ payment, onClose }: { readonly payment: Payment; readonly onClose: () => void }) {
  const { id, account, payer, owed_usd, good_until } = payment;
  const now = useNow();
  const [amount, setAmount] = useState(owed_usd);
  const [transaction, setTransaction] = useState("");
  const [reason, setReason] = useState("");
  const record = useMutation({
    mutationFn: () =>
      unwrap(
        admin.POST("/owed/{id}/refunds", {
          params: { path: { id } },
          body: { amount_usd: amount, transaction, ...(reason.trim() && { reason: reason.trim() }) },
        }),
      ),
    onSuccess: ({ amount_usd: usd }) => {
      toast(`${usdText(usd.replace(/^-/, ""))} recorded as paid back`);
      for (const queryKey of [["admin", "owed"], totalKey]) void queryClient.invalidateQueries({ queryKey });
      onClose();
    },
  });
  return (
    <FormDialog
      title="Record a refund"
      action="Record"
      busy={record.isPending}
      error={record.error}
      onSubmit={record.mutate}
      onClose={onClose}
    >
      <p className="text-muted">
        Send the USDC back on chain first. Nothing is sent here: what you enter is taken off what is owed.
      </p>
      {payer !== null && (
        <p className="flex flex-col gap-1">
          <span className="text-xs font-medium text-muted">Payer</span>
          <Id>{payer}</Id>
        </p>
      )}
      {good_until * 1000 > now && (
        <Notice>
          Its payer can still use it. To pay it back now, freeze <AccountLink id={account} /> first.
        </Notice>
      )}
      <UsdField label="Amount in USD" places={6} required value={amount} onChange={setAmount} />
      <Field
        label="Transaction"
        hint="The signature of your transfer on Solana. It is recorded once, however often it is sent."
        required
        maxLength={100}
        value={transaction}
        onChange={(event) => setTransaction(event.target.value.trim())}
      />
      <Reason value={reason} onChange={setReason} />
    </FormDialog>
  );
}
