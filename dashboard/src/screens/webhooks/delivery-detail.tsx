import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type DeliveryWithBody, deliveryQuery, resend, webhooksChanged } from "../../api/webhooks.ts";
import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { Code } from "../../components/code.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { CopiedId, Facts } from "../../components/facts.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Section } from "../../components/section.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { toast } from "../../components/toast.tsx";
import { duration } from "../../lib/format.ts";
import { DeliveryStatus } from "./deliveries.tsx";

const route = getRouteApi("/webhooks/$id");
const linkClass = "text-accent hover:underline";

export function DeliveryDetail() {
  const { id } = route.useParams();
  return (
    <Page
      title="Delivery"
      intro={<CopiedId id={id} what="delivery id" />}
      actions={
        <Link to="/webhooks" className={linkClass}>
          All webhooks
        </Link>
      }
    >
      <QueryView query={useQuery(deliveryQuery(id))}>{(delivery) => <Detail delivery={delivery} />}</QueryView>
    </Page>
  );
}

function Detail({ delivery }: { readonly delivery: DeliveryWithBody }) {
  const { url, type, object_id, status, attempts, body } = delivery;
  const facts = [
    { name: "Status", value: <DeliveryStatus status={status} /> },
    { name: "Event", value: type },
    { name: "About", value: <About id={object_id} /> },
    { name: "To", value: url },
    { name: "webhook-id", value: <code className="text-xs">{delivery.webhook_id}</code> },
    { name: "Recorded", value: <Time at={delivery.created_at} /> },
    { name: "Next attempt", value: <Time at={delivery.next_attempt_at} absent="none" /> },
  ];
  return (
    <>
      <Facts facts={facts} />
      {type !== "webhook.test" && <Resend delivery={delivery} />}
      <Section title="Attempts">
        {attempts.length === 0 ? (
          <p className="text-muted">None yet.</p>
        ) : (
          <Table
            caption="Attempts, newest first"
            rows={attempts.map((attempt, number) => ({ ...attempt, number })).toReversed()}
            rowKey={({ number }) => String(number)}
            columns={[
              { header: "When", cell: ({ at }) => <Time at={at} /> },
              {
                header: "Outcome",
                cell: ({ status_code, error }) => (
                  <Badge tone={error === null ? "good" : "bad"}>{error ?? status_code}</Badge>
                ),
              },
              { header: "Took", numeric: true, cell: ({ duration_ms }) => duration(duration_ms) },
              {
                header: "It answered",
                wide: true,
                cell: ({ response_snippet: text }) =>
                  text ? <code className="text-xs wrap-anywhere">{text}</code> : <span className="text-muted">–</span>,
              },
            ]}
          />
        )}
      </Section>
      {body === null ? (
        <p className="text-muted">Its body was deleted: bodies are stored for 7 days.</p>
      ) : (
        <Code what="Body" text={body} />
      )}
    </>
  );
}

const About = ({ id }: { readonly id: string }) =>
  id.startsWith("job_") ? (
    <Link to="/jobs/$id" params={{ id }} className={linkClass}>
      <code className="text-xs">{id}</code>
    </Link>
  ) : (
    <code className="text-xs">{id}</code>
  );

function Resend({ delivery: { id } }: { readonly delivery: DeliveryWithBody }) {
  const queries = useQueryClient();
  const again = useMutation({
    mutationFn: () => resend(id),
    onSuccess: async () => {
      await webhooksChanged(queries);
      toast("It is sent again");
    },
  });
  return (
    <div className="flex flex-col items-start gap-3">
      <Button busy={again.isPending} onClick={() => again.mutate()}>
        Send it again
      </Button>
      {again.error && <ErrorNote error={again.error} />}
    </div>
  );
}
