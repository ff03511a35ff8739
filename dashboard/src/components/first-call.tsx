import { useAccountSession } from "../api/session.ts";
import { curlForChat } from "../lib/examples.ts";
import { Code } from "./code.tsx";
import { EmptyState } from "./empty-state.tsx";

/** The overview of an account without calls. */
export function FirstCall() {
  const { service } = useAccountSession();
  return (
    <EmptyState title="No calls yet. Here is one:">
      <Code text={curlForChat(service.public_url, "$API_KEY")} what="curl" />
      <p>
        Set <code className="font-mono text-xs">API_KEY</code> to your key first.
      </p>
    </EmptyState>
  );
}
