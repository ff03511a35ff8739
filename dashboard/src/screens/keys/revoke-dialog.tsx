import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { isLastManagerQuery, type Key, keysChanged, nameOf, revokeKey } from "../../api/keys.ts";
import { endSession } from "../../api/query-client.ts";
import { useAccountSession } from "../../api/session.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Notice } from "../../components/notice.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { toast } from "../../components/toast.tsx";

interface Props {
  readonly target: Key;
  readonly onClose: () => void;
}

/** Warns that no key could manage the account any more. */
export const withoutManager =
  "It is the last key that can manage the account: without it nobody can create keys, see the usage or top up, until the operator makes a new one.";

export function RevokeDialog({ target, onClose }: Props) {
  const queries = useQueryClient();
  const isOwn = useAccountSession().key.id === target.id;
  const isLast = useQuery(isLastManagerQuery(target));
  const revoke = useMutation({
    mutationFn: () => revokeKey(target.id),
    onSuccess: async () => {
      toast(`Revoked ${nameOf(target)}`);
      onClose();
      if (isOwn) endSession("account");
      else await keysChanged(queries);
    },
  });
  return (
    <ConfirmDialog
      title={`Revoke ${nameOf(target)}?`}
      action="Revoke the key"
      busy={revoke.isPending || isLast.isPending}
      error={revoke.error}
      typed={isLast.data ? nameOf(target) : undefined}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    >
      <p>Programs that use it are refused within a second. This cannot be undone.</p>
      {isOwn && <p>You signed in with this key, so you are signed out as well.</p>}
      <QueryView query={isLast}>{(last) => last && <Notice>{withoutManager}</Notice>}</QueryView>
    </ConfirmDialog>
  );
}
