import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { balanceKey, setAlert } from "../../api/balance.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { Field } from "../../components/field.tsx";
import { toast } from "../../components/toast.tsx";

interface Props {
  readonly below: string | null;
  readonly onClose: () => void;
}

/** Below which balance the dashboard warns. */
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
  function submit(event: FormEvent) {
    event.preventDefault();
    save.mutate(amount === "" ? null : amount);
  }
  return (
    <Dialog title="Balance alert" onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-5">
        <Field
          label="Warn when less than this is available, in USD"
          inputMode="decimal"
          pattern="\d+(\.\d+)?"
          placeholder="No alert"
          value={amount}
          onChange={(event) => setAmount(event.target.value.trim())}
        />
        {save.error && <ErrorNote error={save.error} />}
        <div className="flex justify-end gap-3">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={save.isPending}>
            Save
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
