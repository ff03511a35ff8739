import { Link } from "@tanstack/react-router";

export interface NavigationItem {
  readonly to: string;
  readonly label: string;
}

interface Props {
  readonly items: readonly NavigationItem[];
  readonly onNavigate?: () => void;
}

const itemClass =
  "flex min-h-10 items-center rounded-lg px-3 font-medium text-muted hover:bg-raised hover:text-ink aria-[current=page]:bg-accent-soft aria-[current=page]:text-accent-strong";

export function Navigation({ items, onNavigate }: Props) {
  return (
    <ul className="flex flex-col gap-0.5">
      {items.map(({ to, label }) => (
        <li key={to}>
          <Link
            to={to}
            activeOptions={{ exact: to === "/" || to === "/operator" }}
            className={itemClass}
            onClick={onNavigate}
          >
            {label}
          </Link>
        </li>
      ))}
    </ul>
  );
}
