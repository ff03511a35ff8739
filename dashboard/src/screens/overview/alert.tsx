import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { balanceKey, setAlert } from "../../api/balance.ts";
import { AlertChannels } from "../../components/alert-channels.tsx";
import { FormDialog } from "../../components/dialog.tsx";
import { UsdField } from "../../components/field.tsx";
import { toast } from "../../components/toast.tsx";

interface Props {
  readonly below: string | null;
  readonly onClose: () => void;
}

/** Sets the balance below which the dashboard warns. */
export function AlertDialog({ below, onClose }: Props) {
  const queries = useQueryClient();
  const [amount, setAmount] = useState(below ?? "");
  const save = useMutation({
    mutationFn: setAlert,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: balanceKey });
      toast("Saved");
      onClose();
    },
  });
  return (
    <FormDialog
      title="Balance alert"
      action="Save"
      busy={save.isPending}
      error={save.error}
      onSubmit={() => save.mutate(amount === "" ? null : amount)}
      onClose={onClose}
    >
      <UsdField
        label="Warn when less than this is available, in USD"
        placeholder="No alert"
        value={amount}
        onChange={setAmount}
      />
      <AlertChannels what="The alert" event="balance.low" />
    </FormDialog>
  );
}
