import { usdParts } from "../lib/usd.ts";
import { classNames } from "./class-names.ts";

interface Props {
  readonly usd: string;
  /** Reserves space for this many digits after the cents, to align the decimal points of a column. */
  readonly restDigits?: number;
}

/** In a figure the digits beyond the cents are smaller by this. */
const restSize = 0.65;

/** An amount stays on one line of the narrowest figure, so a long one is smaller. */
function figureSize(whole: string, rest: string): string {
  const width = `${whole}.00`.length + restSize * rest.length;
  if (width > 13) return "in-[.figure]:text-[0.6em]";
  return width > 10.5 ? "in-[.figure]:text-[0.8em]" : "";
}

/** An exact amount in USD. Digits beyond the cents are dim, and wrap to their own line in lists and cards. */
export function Money({ usd, restDigits = 0 }: Props) {
  const { sign, whole, cents, rest } = usdParts(usd);
  return (
    <span
      className={classNames(
        "whitespace-nowrap tabular-nums in-[dd:not(.figure)]:whitespace-normal max-sm:in-[td]:whitespace-normal",
        figureSize(`${sign}$${whole}`, rest),
      )}
    >
      <span className="whitespace-nowrap">
        {sign}${whole}.{cents}
      </span>
      <wbr className="hidden in-[dd:not(.figure)]:inline max-sm:in-[td]:inline" />
      <span
        className="font-normal text-muted sm:in-[td]:inline-block sm:in-[td]:text-start in-[.figure]:text-[0.65em]"
        style={restDigits > 0 ? { minWidth: `${restDigits}ch` } : undefined}
      >
        {rest}
      </span>
    </span>
  );
}
