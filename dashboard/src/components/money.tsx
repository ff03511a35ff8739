import { usdParts } from "../lib/usd.ts";

/** An exact amount in USD; what is finer than a cent is dim. */
export function Money({ usd }: { readonly usd: string }) {
  const { sign, whole, cents, rest } = usdParts(usd);
  return (
    <span className="whitespace-nowrap tabular-nums in-[dd]:whitespace-normal">
      {sign}${whole}.{cents}
      <span className="font-normal text-muted in-[dd]:text-[0.75em]">{rest}</span>
    </span>
  );
}
