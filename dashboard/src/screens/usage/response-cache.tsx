import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { cacheUsageQuery, clearCache } from "../../api/response-cache.ts";
import { Button } from "../../components/button.tsx";
import { Card, Figure } from "../../components/card.tsx";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { Money } from "../../components/money.tsx";
import { QueryView } from "../../components/query-view.tsx";
import { Skeleton } from "../../components/skeleton.tsx";
import { toast } from "../../components/toast.tsx";
import { count, dayLabel, share } from "../../lib/format.ts";

/** How calls used the response cache on the days of the period. Only for keys that manage the account. */
export function ResponseCache({ from, to }: { readonly from: string; readonly to: string }) {
  const [isClearing, setClearing] = useState(false);
  const query = useQuery(cacheUsageQuery({ from, to }));
  return (
    <section className="flex flex-col gap-4">
      <div className="flex flex-wrap items-end justify-between gap-3">
        <div className="min-w-0">
          <h2 className="text-base font-semibold">Response cache</h2>
          <p className="text-xs text-muted">
            All calls of the account that asked for it, {dayLabel(from)} to {dayLabel(to)}, without the filters.
          </p>
        </div>
        {query.data?.available && (
          <Button look="danger" onClick={() => setClearing(true)}>
            Clear cache
          </Button>
        )}
      </div>
      <QueryView query={query} skeleton={<Skeleton rows={1} className="h-28" />}>
        {({ available, hits, coalesced, misses, hit_rate: rate, saved_usd: saved }) =>
          available ? (
            <div className="grid grid-cols-2 gap-4 lg:grid-cols-3">
              <Figure label="Hit rate" note={`Of ${count(hits + misses)} lookups`}>
                {rate === null ? "–" : share(rate)}
              </Figure>
              <Figure label="Hits" note={`${count(coalesced)} of them waited for an equal call`}>
                {count(hits)}
              </Figure>
              <Figure label="Saved by the response cache" note="What the hits would have cost">
                <Money usd={saved} />
              </Figure>
            </div>
          ) : (
            <Card className="text-muted">This service has no response cache, so each call runs.</Card>
          )
        }
      </QueryView>
      {isClearing && <ClearDialog onClose={() => setClearing(false)} />}
    </section>
  );
}

function ClearDialog({ onClose }: { readonly onClose: () => void }) {
  const clear = useMutation({
    mutationFn: clearCache,
    onSuccess: () => {
      toast("Cleared the response cache");
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title="Clear the response cache?"
      action="Clear the cache"
      busy={clear.isPending}
      error={clear.error}
      onConfirm={() => clear.mutate()}
      onClose={onClose}
    >
      <p>
        All answers that are stored for this account are deleted. The next call of each kind runs, and is paid, again.
      </p>
    </ConfirmDialog>
  );
}
