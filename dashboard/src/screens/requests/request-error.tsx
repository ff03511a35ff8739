import { Link } from "@tanstack/react-router";
import type { CallWithAttempts } from "../../api/requests.ts";
import { Card } from "../../components/card.tsx";
import { Section } from "../../components/section.tsx";

/** Text of the service with code in backticks. */
const WithCode = ({ text }: { readonly text: string }) =>
  text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));

/** Says where the message is. */
const NoMessage = ({ batch }: Pick<CallWithAttempts, "batch">) =>
  batch === null ? (
    <p className="text-muted">Its message was kept for 24 hours, or was not recorded.</p>
  ) : (
    <p className="text-muted">
      Its message is in the file of errors of{" "}
      <Link to="/batches/$id" params={{ id: batch }} className="text-accent underline">
        the batch
      </Link>
      .
    </p>
  );

/** The error of a request, and what to do about it. */
export function RequestError({ call }: { readonly call: CallWithAttempts }) {
  const { error, error_message, error_advice, http_status, batch } = call;
  if (error === null) return null;
  return (
    <Section title="What went wrong">
      <Card className="flex flex-col gap-3">
        <p className="text-xs text-muted">
          {http_status !== null && `${http_status} `}
          <code>{error}</code>
        </p>
        {error_message === null ? <NoMessage batch={batch} /> : <p className="wrap-anywhere">{error_message}</p>}
        {error_advice !== null && (
          <p>
            <span className="font-medium">What to do: </span>
            <WithCode text={error_advice} />
          </p>
        )}
      </Card>
    </Section>
  );
}
