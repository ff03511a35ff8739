import { cpuPerCall, gatewayCpu, medianRatio, type Round } from "./measure.ts";
import { pacedLoads, titles } from "./scenarios.ts";
import { median, ms, sum, times } from "./table.ts";
import { roundsOf } from "./tables.ts";

const loads = [
  ...[false, true].flatMap((stream) => [50, 10, 1].map((connections) => titles.closed(stream, connections))),
  ...pacedLoads.map(titles.paced),
];
const parts = ["api", "worker", "Redis", "MongoDB"] as const;
const legend = ["Portkey", "service: API", "workers", "Redis", "MongoDB"];

const width = 900;
const labelWidth = 264;
const valueWidth = 130;
const barHeight = 16;
const groupHeight = 52;
const headHeight = 100;

const escape = (text: string) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
const text = (x: number, y: number, content: string, style = "", anchor = "start") =>
  `<text x="${x}" y="${y}" text-anchor="${anchor}" class="${style}">${escape(content)}</text>`;
const bar = (x: number, y: number, length: number, color: number, height = barHeight) =>
  `<rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(0.5, length).toFixed(1)}" height="${height}" class="c${color}"/>`;

/** Renders an SVG: processor time per call through each gateway, as multiples of Portkey's. */
export function renderChart(rounds: readonly Round[]): string {
  const groups = loads.flatMap((title) => {
    const [own, portkey] = [roundsOf(rounds, title, "service"), roundsOf(rounds, title, "portkey")];
    if (own.length === 0 || portkey.length === 0) return [];
    const partsMs = parts.map((name) => median(own.map((round) => cpuPerCall(round, [name]))));
    return [
      {
        title,
        partsMs,
        serviceMs: median(own.map(gatewayCpu)),
        portkeyMs: median(portkey.map(gatewayCpu)),
        ratio: medianRatio(own, portkey, gatewayCpu),
      },
    ];
  });
  const most = Math.max(1, ...groups.map(({ ratio }) => ratio));
  const unit = (width - labelWidth - valueWidth) / most;
  const height = headHeight + groups.length * groupHeight + 8;

  const key = legend.map((name, index) => {
    const x = labelWidth + index * 104;
    return bar(x, 62, 12, index, 12) + text(x + 18, 72, name, "small");
  });
  const lines = groups.map(({ title, portkeyMs, partsMs, serviceMs, ratio }, index) => {
    const y = headHeight + index * groupHeight;
    let x = labelWidth;
    const stacked = partsMs.map((partMs, part) => {
      const length = (partMs / sum(partsMs)) * ratio * unit;
      const drawn = bar(x, y + barHeight + 3, length, part + 1);
      x += length;
      return drawn;
    });
    return [
      text(labelWidth - 12, y + barHeight + 5, title, "", "end"),
      bar(labelWidth, y, unit, 0),
      text(labelWidth + unit + 6, y + 12, `${ms(portkeyMs)} ms`, "small"),
      ...stacked,
      text(x + 6, y + barHeight + 15, `${ms(serviceMs)} ms, ${times(ratio)}`, "small strong"),
    ].join("");
  });
  const one = (labelWidth + unit).toFixed(1);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">
<title>Processor time a call, this service and Portkey's gateway</title>
<style>
svg { --back: #ffffff; --ink: #1f2328; --dim: #59636e; --c0: #8c959f; --c1: #0969da; --c2: #bf8700; --c3: #8250df; --c4: #1a7f37 }
@media (prefers-color-scheme: dark) {
svg { --back: #0d1117; --ink: #f0f6fc; --dim: #9198a1; --c0: #6e7681; --c1: #4493f8; --c2: #d29922; --c3: #a371f7; --c4: #3fb950 }
}
text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.title { font-size: 17px; font-weight: 600 } .small { font-size: 12px; fill: var(--dim) } .strong { fill: var(--ink) }
rect { stroke: var(--back) } .back { fill: var(--back) } .one { stroke: var(--dim); stroke-dasharray: 3 3 }
.c0 { fill: var(--c0) } .c1 { fill: var(--c1) } .c2 { fill: var(--c2) } .c3 { fill: var(--c3) } .c4 { fill: var(--c4) }
</style>
<rect width="${width}" height="${height}" class="back"/>
${text(16, 28, "Processor time a call", "title")}
${text(16, 47, "as multiples of Portkey's in the same run; this service bills, Portkey does not", "small")}
${key.join("\n")}
${lines.join("\n")}
<line x1="${one}" y1="${headHeight - 8}" x2="${one}" y2="${height - 8}" class="one"/>
</svg>
`;
}
