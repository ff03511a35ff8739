import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { queryClient } from "../api/query-client.ts";
import { ConfirmDialog, FormDialog } from "../components/dialog.tsx";
import { Field, UsdField } from "../components/field.tsx";
import { Money } from "../components/money.tsx";
import { Select } from "../components/select.tsx";
import { toast } from "../components/toast.tsx";
import { usdText } from "../lib/usd.ts";
import { tiers } from "./accounts.tsx";
import { type Account, accountQuery, admin } from "./api.ts";
import { Reason } from "./reason.tsx";

interface Props {
  readonly account: Account;
  readonly onClose: () => void;
}

/** Invalidates everything that shows the account. */
function changed(id: string): void {
  void queryClient.invalidateQueries({ queryKey: accountQuery(id).queryKey });
  for (const list of ["accounts", "ledger"]) void queryClient.invalidateQueries({ queryKey: ["admin", list] });
}

// crypto.randomUUID is missing on pages that are not served over https.
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Credits an account. The idempotency key is created with the form, so that sending it twice credits once. */
export function Credit({ account, onClose }: Props) {
  const [amount, setAmount] = useState("");
  const [reason, setReason] = useState("");
  const [idempotencyKey, setIdempotencyKey] = useState(newKey);
  const credit = useMutation({
    mutationFn: () =>
      unwrap(
        admin.POST("/accounts/{id}/credits", {
          params: { path: { id: account.id } },
          body: {
            amount_usd: amount,
            idempotency_key: idempotencyKey,
            ...(reason.trim() && { reason: reason.trim() }),
          },
        }),
      ),
    onSuccess: ({ amount_usd: usd }) => {
      toast(
        usd.startsWith("-")
          ? `Took ${usdText(usd.slice(1))} back from ${account.name}`
          : `Credited ${usdText(usd)} to ${account.name}`,
      );
      changed(account.id);
      onClose();
    },
  });
  return (
    <FormDialog
      title={`Credit ${account.name}`}
      action={amount.startsWith("-") ? "Take back" : "Credit"}
      busy={credit.isPending}
      error={credit.error}
      onSubmit={credit.mutate}
      onClose={onClose}
    >
      <p className="text-muted">
        Available now: <Money usd={account.available_usd} />
      </p>
      <UsdField
        label="Amount in USD"
        hint="Up to nine decimals. A negative amount takes back what is available."
        mayBeNegative
        placeholder="25.00"
        required
        value={amount}
        onChange={setAmount}
      />
      <Reason value={reason} onChange={setReason} />
      <Field
        label="Idempotency key"
        hint="The same key credits once, however often it is sent. An invoice's number is a good one."
        required
        maxLength={255}
        value={idempotencyKey}
        onChange={(event) => setIdempotencyKey(event.target.value)}
      />
    </FormDialog>
  );
}

function useUpdate({ account, onClose }: Props, done: string) {
  return useMutation({
    mutationFn: (body: { name?: string; tier?: "standard" | "elite"; frozen?: boolean }) =>
      unwrap(admin.PATCH("/accounts/{id}", { params: { path: { id: account.id } }, body })),
    onSuccess: () => {
      toast(done);
      changed(account.id);
      onClose();
    },
  });
}

export function EditAccount(props: Props) {
  const { account, onClose } = props;
  const [name, setName] = useState(account.name);
  const [tier, setTier] = useState<string>(account.tier);
  const update = useUpdate(props, "The account is changed");
  return (
    <FormDialog
      title="Name and tier"
      action="Save"
      busy={update.isPending}
      error={update.error}
      onSubmit={() => update.mutate({ name, tier: tier === "elite" ? "elite" : "standard" })}
      onClose={onClose}
    >
      <Field label="Name" required maxLength={200} value={name} onChange={(event) => setName(event.target.value)} />
      <Select
        label="Tier"
        hint="Elite accounts pay less, from the next call on."
        value={tier}
        options={tiers}
        onChange={setTier}
      />
    </FormDialog>
  );
}

export function Freeze(props: Props) {
  const { account, onClose } = props;
  const update = useUpdate(props, account.frozen ? `${account.name} may call again` : `${account.name} is frozen`);
  return (
    <ConfirmDialog
      title={account.frozen ? `Unfreeze ${account.name}?` : `Freeze ${account.name}?`}
      action={account.frozen ? "Unfreeze" : "Freeze"}
      busy={update.isPending}
      error={update.error}
      onConfirm={() => update.mutate({ frozen: !account.frozen })}
      onClose={onClose}
    >
      {account.frozen ? (
        <p>Its calls are accepted again at once, in every instance.</p>
      ) : (
        <p>New calls of all its keys are refused with 403 at once. Calls that run end as usual; the balance stays.</p>
      )}
    </ConfirmDialog>
  );
}
