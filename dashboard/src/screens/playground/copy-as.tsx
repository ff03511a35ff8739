import { useAccountSession } from "../../api/session.ts";
import { Code } from "../../components/code.tsx";
import { Popover } from "../../components/popover.tsx";
import { asCurl, asPython, asTypeScript } from "../../lib/code-samples.ts";

interface Props {
  readonly path: string;
  /** Throws while a field is invalid JSON. */
  readonly body: () => object;
}

/** The call as code for a terminal or a program. */
export function CopyAs({ path, body }: Props) {
  const { service } = useAccountSession();
  return (
    <Popover label="Copy as code" small>
      <Samples url={`${service.public_url}${path}`} body={attempt(body)} />
    </Popover>
  );
}

function attempt(body: () => object): object | undefined {
  try {
    return body();
  } catch {
    return undefined;
  }
}

function Samples({ url, body }: { readonly url: string; readonly body: object | undefined }) {
  if (!body) return <p>A field holds JSON that is not complete.</p>;
  const call = { url, body };
  return (
    <div className="flex w-[36rem] max-w-full flex-col gap-3">
      <Code text={asCurl(call)} what="curl" />
      <Code text={asTypeScript(call)} what="TypeScript" />
      <Code text={asPython(call)} what="Python" />
    </div>
  );
}
