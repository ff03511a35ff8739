import { encode } from "uqr";

interface Props {
  readonly text: string;
  readonly label: string;
}

const borderModules = 2;

/** Dark on light in both themes, because scanners expect it. */
export function QrCode({ text, label }: Props) {
  const { data, size } = encode(text, { ecc: "M", border: borderModules });
  const path = data.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return (
    <svg viewBox={`0 0 ${size} ${size}`} role="img" aria-label={label} className="w-full max-w-64 rounded-xl bg-white">
      <path d={path} shapeRendering="crispEdges" fill="#000" />
    </svg>
  );
}
