import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useEffect, useState } from "react";
import { eventsQuery } from "../api/events.ts";
import { type Session, useCanManage } from "../api/session.ts";
import { endpointsQuery } from "../api/webhooks.ts";
import { type Item, itemOf, newestFirst, noticesOf } from "../lib/events.ts";
import { seenBy } from "../lib/seen.ts";
import { operatorEventsQuery } from "../operator/api.ts";
import { Badge } from "./badge.tsx";
import { Popover } from "./popover.tsx";
import { Time } from "./time.tsx";

const Icon = () => (
  <svg
    viewBox="0 0 20 20"
    width="20"
    height="20"
    fill="none"
    stroke="currentColor"
    strokeWidth="1.6"
    aria-hidden="true"
  >
    <path d="M10 2.5a5 5 0 0 0-5 5v3.2L3.5 13.5h13L15 10.7V7.5a5 5 0 0 0-5-5Z" strokeLinejoin="round" />
    <path d="M8 16a2 2 0 0 0 4 0" strokeLinecap="round" />
  </svg>
);

interface Props {
  /** Whose events they are. */
  readonly owner: string;
  /** Newest first; undefined while they are not known. */
  readonly items: readonly Item[] | undefined;
  /** Where else they are sent. */
  readonly elsewhere: ReactNode;
}

const close = (element: Element) => element.closest<HTMLElement>("[popover]")?.hidePopover();

/** The events; those that came since the bell was opened last are marked. */
function List({ owner, items = [], elsewhere }: Props) {
  const { use, set } = seenBy(owner);
  const seen = use();
  // New events stay marked until the bell is closed.
  const [before] = useState(seen);
  const isNew = ({ id }: Item) => !before.has(id);
  useEffect(() => {
    if (items.some(({ id }) => !seen.has(id))) set(new Set(items.map(({ id }) => id)));
  });
  return (
    <section aria-label="Notifications" className="flex w-88 max-w-full flex-col gap-3">
      <h2 className="font-semibold">Notifications</h2>
      {items.length === 0 ? (
        <p className="text-muted">Nothing has happened in the last 30 days.</p>
      ) : (
        <ul className="flex flex-col divide-y divide-line">
          {items.map((item) => (
            <li key={item.id} className="flex flex-col gap-0.5 py-2.5">
              <span className="flex items-start justify-between gap-3">
                <Link
                  {...item.link}
                  className="font-medium text-accent wrap-anywhere hover:underline"
                  onClick={({ currentTarget }) => close(currentTarget)}
                >
                  {item.title}
                </Link>
                {isNew(item) && <Badge tone="accent">New</Badge>}
              </span>
              {item.detail && <span className="text-xs wrap-anywhere">{item.detail}</span>}
              <span className="text-xs text-muted">
                <Time at={item.at} />
              </span>
            </li>
          ))}
        </ul>
      )}
      <p className="border-t border-line pt-3 text-xs text-muted">{elsewhere}</p>
    </section>
  );
}

function Bell(props: Props) {
  const seen = seenBy(props.owner).use();
  const unseen = props.items?.filter(({ id }) => !seen.has(id)).length ?? 0;
  const label = (
    <>
      <Icon />
      <span className="sr-only">Notifications{unseen > 0 && `, ${unseen} new`}</span>
      {unseen > 0 && (
        <span aria-hidden="true" className="-ms-1 rounded-full bg-accent px-1.5 text-xs font-semibold text-on-accent">
          {unseen}
        </span>
      )}
    </>
  );
  return (
    <Popover look="quiet" small label={label}>
      <List {...props} />
    </Popover>
  );
}

const endpointsPollMs = 60_000;

/** The account's alerts, and its webhook endpoints that fail, which no webhook can tell of. */
function AccountBell({ account }: { readonly account: string }) {
  const { data: events } = useQuery(eventsQuery);
  const { data: endpoints = [] } = useQuery({ ...endpointsQuery, refetchInterval: endpointsPollMs });
  const items = events && newestFirst([...events.map(itemOf), ...endpoints.flatMap(noticesOf)]);
  const elsewhere = (
    <>
      Alerts of the balance are set on the overview, budgets with each key.{" "}
      <Link to="/webhooks" className="text-accent underline" onClick={({ currentTarget }) => close(currentTarget)}>
        Webhooks
      </Link>{" "}
      send all of this to your server. No e-mail is sent.
    </>
  );
  return <Bell owner={account} items={items} elsewhere={elsewhere} />;
}

function OperatorBell() {
  const { data: events } = useQuery(operatorEventsQuery);
  const elsewhere = (
    <>
      The webhook endpoints of the account that <code>OPERATOR_ACCOUNT</code> names receive these events, too.
    </>
  );
  return <Bell owner="operator" items={events?.map(itemOf)} elsewhere={elsewhere} />;
}

/** Events are shown to operators, and to keys that manage their account. */
export function SessionBell({ session }: { readonly session: Session }) {
  const canManage = useCanManage();
  if (session.kind === "operator") return <OperatorBell />;
  return canManage && <AccountBell account={session.account.id} />;
}
