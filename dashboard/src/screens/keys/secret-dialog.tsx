import type { KeyWithSecret } from "../../api/keys.ts";
import { useAccountSession } from "../../api/session.ts";
import { Code } from "../../components/code.tsx";
import { ShownOnce } from "../../components/shown-once.tsx";
import { curlForChat } from "../../lib/examples.ts";

interface Props {
  readonly made: KeyWithSecret;
  readonly onClose: () => void;
}

export function SecretDialog({ made, onClose }: Props) {
  const { service } = useAccountSession();
  return (
    <ShownOnce
      title="Copy the key now"
      text="It is shown this once. We store a hash of it only, so nobody can show it again."
      onClose={onClose}
    >
      <Code text={made.key} what="Key" />
      <Code text={curlForChat(service.public_url, made.key)} what="A first call" />
    </ShownOnce>
  );
}
