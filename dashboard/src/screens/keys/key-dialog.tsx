import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { ApiError } from "../../api/client.ts";
import { createKey, type Key, type KeyWithSecret, keysChanged, updateKey } from "../../api/keys.ts";
import { Button } from "../../components/button.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { toast } from "../../components/toast.tsx";
import { KeyFields } from "./key-fields.tsx";
import { formOf, toNewKey, toPatch } from "./key-form.ts";

interface Props {
  /** Absent: a new key is made. */
  readonly edited?: Key;
  readonly onClose: () => void;
  readonly onMade?: (key: KeyWithSecret) => void;
}

export function KeyDialog({ edited, onClose, onMade }: Props) {
  const queries = useQueryClient();
  const [form, setForm] = useState(() => formOf(edited));
  const save = useMutation({
    mutationFn: async () => {
      if (edited) await updateKey(edited.id, toPatch(form));
      else return await createKey(toNewKey(form));
    },
    onSuccess: async (made) => {
      await keysChanged(queries);
      if (made) onMade?.(made);
      else {
        toast("Saved");
        onClose();
      }
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    save.mutate();
  }
  return (
    <Dialog title={edited ? "Edit the key" : "New key"} onClose={onClose}>
      <form onSubmit={submit} className="flex flex-col gap-5">
        <KeyFields form={form} onChange={setForm} wrong={save.error instanceof ApiError ? save.error : undefined} />
        {save.error && <ErrorNote error={save.error} />}
        <div className="flex flex-wrap justify-end gap-3">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" busy={save.isPending}>
            {edited ? "Save" : "Make the key"}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
