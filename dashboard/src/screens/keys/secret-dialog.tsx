import type { KeyWithSecret } from "../../api/keys.ts";
import { useAccountSession } from "../../api/session.ts";
import { Button } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { curlForChat } from "../../lib/examples.ts";

interface Props {
  readonly made: KeyWithSecret;
  readonly onClose: () => void;
}

export function SecretDialog({ made, onClose }: Props) {
  const { service } = useAccountSession();
  return (
    <Dialog title="Copy the key now" onClose={onClose}>
      <div className="flex flex-col gap-4">
        <p className="text-muted">It is shown this once. We store a hash of it only, so nobody can show it again.</p>
        <Code text={made.key} what="Key" />
        <Code text={curlForChat(service.public_url, made.key)} what="A first call" />
        <div className="flex justify-end">
          <Button look="primary" onClick={onClose}>
            I have it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
