import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "../../api/client.ts";
import { createKey, isLastManagerQuery, type Key, type KeyWithSecret, keysChanged, updateKey } from "../../api/keys.ts";
import { FormDialog } from "../../components/dialog.tsx";
import { KeyFields } from "../../components/key-fields.tsx";
import { Notice } from "../../components/notice.tsx";
import { toast } from "../../components/toast.tsx";
import { formOf, toNewKey, toPatch } from "../../lib/key-form.ts";
import { withoutManager } from "./revoke-dialog.tsx";

interface Props {
  /** Omitted for a new key. */
  readonly edited?: Key;
  readonly onClose: () => void;
  readonly onMade?: (key: KeyWithSecret) => void;
}

export function KeyDialog({ edited, onClose, onMade }: Props) {
  const queries = useQueryClient();
  const [form, setForm] = useState(() => formOf(edited));
  const losesManage = edited?.scopes.includes("manage") === true && !form.scopes.includes("manage");
  const isLast = useQuery({ ...isLastManagerQuery(edited ?? { id: "", scopes: [] }), enabled: losesManage });
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
  return (
    <FormDialog
      title={edited ? "Edit the key" : "New key"}
      action={edited ? "Save" : "Create key"}
      busy={save.isPending}
      error={save.error}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      {losesManage && isLast.data && <Notice>{withoutManager}</Notice>}
      <KeyFields form={form} onChange={setForm} wrong={save.error instanceof ApiError ? save.error : undefined} />
    </FormDialog>
  );
}
