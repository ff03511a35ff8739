import { type ReactNode, Suspense } from "react";
import { Skeleton } from "./skeleton.tsx";
import { SwitchButtons } from "./switch-buttons.tsx";
import { useChoice } from "./use-choice.ts";

interface Props {
  readonly title: string;
  readonly chart: ReactNode;
  readonly table: ReactNode;
  /** More controls next to the switch. */
  readonly controls?: ReactNode;
}

const options = [
  { value: "chart", label: "Chart" },
  { value: "table", label: "Table" },
] as const;

/** A chart with a switch to a table of the same numbers. The parameter `as` of the address keeps it. */
export function ChartOrTable({ title, chart, table, controls }: Props) {
  const [shown, show] = useChoice("as", options, "chart");
  return (
    <section className="flex flex-col gap-4">
      <div className="flex flex-wrap items-center justify-between gap-3">
        <h2 className="text-base font-semibold">{title}</h2>
        <div className="flex flex-wrap items-center gap-3">
          {controls}
          <SwitchButtons label="Show as" value={shown} options={options} onChange={show} />
        </div>
      </div>
      {shown === "chart" ? <Suspense fallback={<Skeleton rows={1} className="h-64" />}>{chart}</Suspense> : table}
    </section>
  );
}
