import { useAccountSession } from "../api/session.ts";
import { asCurl, asPython, asTypeScript } from "../lib/code-samples.ts";
import { Code } from "./code.tsx";

/** A call as code for a terminal and for programs. */
export function CallCode({ path, body }: { readonly path: string; readonly body: object }) {
  const { service } = useAccountSession();
  const call = { url: `${service.public_url}${path}`, body };
  return (
    <>
      <Code text={asCurl(call)} what="curl" />
      <Code text={asTypeScript(call)} what="TypeScript" />
      <Code text={asPython(call)} what="Python" />
    </>
  );
}
