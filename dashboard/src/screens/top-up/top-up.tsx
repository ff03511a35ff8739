import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useAccountSession, useCanManage } from "../../api/session.ts";
import { createTopup, topupsQuery } from "../../api/topups.ts";
import { Button } from "../../components/button.tsx";
import { Card } from "../../components/card.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNote } from "../../components/error-note.tsx";
import { UsdField } from "../../components/field.tsx";
import { Page } from "../../components/page.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Section } from "../../components/section.tsx";
import { Payment } from "./payment.tsx";
import { TopupTable } from "./topup-table.tsx";

const route = getRouteApi("/top-up");
const amounts = ["10", "25", "100"];

export function TopUp() {
  const canManage = useCanManage();
  const { service } = useAccountSession();
  if (!service.topups)
    return (
      <Page title="Top up">
        <EmptyState title="This service takes no payments here">
          <p>Ask its operator for credit.</p>
        </EmptyState>
      </Page>
    );
  if (!canManage)
    return (
      <Page title="Top up">
        <EmptyState title="This key cannot top up">
          <p>Sign in with a key that has the scope manage.</p>
        </EmptyState>
      </Page>
    );
  return <Payments />;
}

function Payments() {
  const { id } = route.useSearch();
  const history = useQuery(topupsQuery);
  return (
    <Page
      title="Top up"
      intro="Pay with USDC from any Solana wallet. The balance rises when the payment is final, in less than a minute."
    >
      <div className="grid items-start gap-6 lg:grid-cols-2">
        <Amount />
        {id && <Payment key={id} id={id} />}
      </div>
      <Section title="History">
        <QueryView query={history}>
          {({ data }) =>
            data.length > 0 ? (
              <TopupTable topups={data} />
            ) : (
              <EmptyState title="No top-ups yet">Choose an amount above.</EmptyState>
            )
          }
        </QueryView>
      </Section>
    </Page>
  );
}

function Amount() {
  const queries = useQueryClient();
  const navigate = route.useNavigate();
  const [amount, setAmount] = useState("25");
  const make = useMutation({
    mutationFn: createTopup,
    onSuccess: async ({ id }) => {
      await queries.invalidateQueries({ queryKey: topupsQuery.queryKey, exact: true });
      await navigate({ search: { id } });
    },
  });
  function submit(event: FormEvent) {
    event.preventDefault();
    make.mutate(amount);
  }
  return (
    <Card>
      <form onSubmit={submit} className="flex flex-col gap-4">
        <UsdField label="Amount in USD" places={6} required value={amount} onChange={setAmount} />
        <div className="flex flex-wrap gap-2">
          {amounts.map((each) => (
            <Button key={each} small aria-pressed={each === amount} onClick={() => setAmount(each)}>
              ${each}
            </Button>
          ))}
        </div>
        <Button type="submit" look="primary" busy={make.isPending}>
          Show the QR code
        </Button>
        {make.error && <ErrorNote error={make.error} />}
      </form>
    </Card>
  );
}
