import { useMutation, useQueryClient } from "@tanstack/react-query";
import { deleteProviderKey, type ProviderKey, providerKeysChanged } from "../../api/provider-keys.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { toast } from "../../components/toast.tsx";

interface Props {
  readonly target: ProviderKey;
  readonly onClose: () => void;
}

export function DeleteDialog({ target: { id, provider, label }, onClose }: Props) {
  const queries = useQueryClient();
  const remove = useMutation({
    mutationFn: () => deleteProviderKey(id),
    onSuccess: async () => {
      await providerKeysChanged(queries);
      toast("The provider key is deleted");
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title="Delete this provider key?"
      action="Delete the provider key"
      busy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p className="wrap-anywhere">
        The credential {label} is deleted. Calls then run with another of your keys for {provider}, or with the
        service's own key at the full price.
      </p>
    </ConfirmDialog>
  );
}
