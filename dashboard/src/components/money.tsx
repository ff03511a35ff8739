import { usdParts } from "../lib/usd.ts";
import { classNames } from "./class-names.ts";

interface Props {
  readonly usd: string;
  /** Space for so many digits after the cents, so that the decimal points of a column are below each other. */
  readonly restDigits?: number;
}

/** From here on a figure is set smaller. */
const longWhole = "1,000,000".length;

/** An exact amount in USD. What is finer than a cent is dim, and wraps to a line of its own in figures and cards. */
export function Money({ usd, restDigits = 0 }: Props) {
  const { sign, whole, cents, rest } = usdParts(usd);
  return (
    <span
      className={classNames(
        "whitespace-nowrap tabular-nums in-[dd]:whitespace-normal max-sm:in-[td]:whitespace-normal",
        whole.length >= longWhole && "in-[dd]:text-[0.7em]",
      )}
    >
      <span className="whitespace-nowrap">
        {sign}${whole}.{cents}
      </span>
      <wbr className="hidden in-[dd]:inline max-sm:in-[td]:inline" />
      <span
        className="font-normal text-muted sm:in-[td]:inline-block sm:in-[td]:text-start in-[dd]:text-[0.55em] in-[dd]:leading-none"
        style={restDigits > 0 ? { minWidth: `${restDigits}ch` } : undefined}
      >
        {rest}
      </span>
    </span>
  );
}
