import { CallCode } from "../../components/call-code.tsx";
import { Popover } from "../../components/popover.tsx";

interface Props {
  readonly path: string;
  /** Throws while a field is invalid JSON. */
  readonly body: () => object;
}

/** The call as code for a terminal or a program. */
export const CopyAs = ({ path, body }: Props) => (
  <Popover label="Copy as code" small>
    <Samples path={path} body={attempt(body)} />
  </Popover>
);

function attempt(body: () => object): object | undefined {
  try {
    return body();
  } catch {
    return undefined;
  }
}

const Samples = ({ path, body }: { readonly path: string; readonly body: object | undefined }) =>
  body ? (
    <div className="flex w-[36rem] max-w-full flex-col gap-3">
      <CallCode path={path} body={body} />
    </div>
  ) : (
    <p>A field holds JSON that is not complete.</p>
  );
