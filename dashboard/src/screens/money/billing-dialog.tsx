import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { accountQuery, type Billing, setBilling } from "../../api/account.ts";
import { invoiceKey } from "../../api/invoices.ts";
import { FormDialog } from "../../components/dialog.tsx";
import { Field, TextArea } from "../../components/field.tsx";
import { toast } from "../../components/toast.tsx";

interface Props {
  readonly billing: Billing;
  readonly onClose: () => void;
}

/** Edits how invoices name the customer. */
export function BillingDialog({ billing, onClose }: Props) {
  const queries = useQueryClient();
  const [name, setName] = useState(billing.name);
  const [address, setAddress] = useState(billing.address ?? "");
  const [taxId, setTaxId] = useState(billing.tax_id ?? "");
  const save = useMutation({
    mutationFn: setBilling,
    async onSuccess() {
      await queries.invalidateQueries({ queryKey: accountQuery.queryKey });
      await queries.invalidateQueries({ queryKey: invoiceKey });
      toast("Saved");
      onClose();
    },
  });
  const [named, placed, taxed] = [name.trim(), address.trim(), taxId.trim()];
  const given = { ...(named && { name: named }), ...(placed && { address: placed }), ...(taxed && { tax_id: taxed }) };
  return (
    <FormDialog
      title="Billing details"
      action="Save"
      busy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate(Object.keys(given).length > 0 ? given : null)}
      onClose={onClose}
    >
      <p className="text-muted">For invoices that have no number yet. Those that have one do not change.</p>
      <Field label="Name" maxLength={200} value={name} onChange={({ target }) => setName(target.value)} />
      <TextArea
        label="Address"
        rows={3}
        maxLength={500}
        value={address}
        onChange={({ target }) => setAddress(target.value)}
      />
      <Field label="Tax number" maxLength={100} value={taxId} onChange={({ target }) => setTaxId(target.value)} />
    </FormDialog>
  );
}
