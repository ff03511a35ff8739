import { usdParts } from "../lib/usd.ts";
import { classNames } from "./class-names.ts";

interface Props {
  readonly usd: string;
  /** Reserves space for this many digits after the cents, to align the decimal points of a column. */
  readonly restDigits?: number;
}

/** Figures of this length and more use a smaller font. */
const longWhole = "1,000,000".length;

/** An exact amount in USD. Digits beyond the cents are dim, and wrap to their own line in figures and cards. */
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
