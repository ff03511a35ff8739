import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Key, keysChanged, revokeKey } from "../../api/keys.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { toast } from "../../components/toast.tsx";
import { nameOf } from "./key-table.tsx";

interface Props {
  readonly target: Key;
  readonly onClose: () => void;
}

export function RevokeDialog({ target, onClose }: Props) {
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeKey(target.id),
    onSuccess: async () => {
      await keysChanged(queries);
      toast(`Revoked ${nameOf(target)}`);
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Revoke ${nameOf(target)}?`}
      action="Revoke the key"
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>Programs that use it are refused within a second. This cannot be undone.</p>
    </ConfirmDialog>
  );
}
