import { parseArgs } from "node:util";
import { startService } from "../clients/service.ts";
import { attackCharacters, slowestMs } from "./attack-regexps.ts";
import { findRegexps } from "./find-regexps.ts";
import { inputs } from "./inputs.ts";
import { startProviders } from "./providers.ts";
import { type Figures, judge, measure, medianOf, startWatch } from "./watch.ts";

/**
 * npm run test:hostile -- [--only pattern] [--rounds 5]
 *
 * Sends hostile inputs within the limits to an API and a worker process, and prints how long each blocked their event loops:
 * the median of the longest delays of its rounds (`held`: without the time for which the thread waited for a processor).
 * Exits with 1 if one blocked a loop for more than 100 ms. Then runs every regular expression of the code on its worst input.
 * `--only`: inputs whose kind and name match, such as `^media: MP3`, or `regexps`.
 */
const { values: options } = parseArgs({
  options: { only: { type: "string", default: "" }, rounds: { type: "string", default: "5" } },
});
const limitMs = 100;
const shownRows = 40;
const say = (text: string) => process.stdout.write(`${text}\n`);
const ms = (value: number) => value.toFixed(1).padStart(8);

const row = ({ heldMs, delayMs, idleDelayMs, process: of, status, name }: Figures) =>
  `${ms(heldMs)} ${ms(delayMs)} ${ms(idleDelayMs)}  ${of.padEnd(8)} ${status}  ${name}`;

/** The time that this process takes for a harmless text of 20 MB. */
function harmlessMs(): number {
  const text = JSON.stringify("QUJD".repeat(5 * 1024 * 1024));
  return medianOf(
    Array.from({ length: 5 }, () => {
      const start = performance.now();
      JSON.parse(text);
      return performance.now() - start;
    }),
  );
}

/** Runs every regular expression of the code on its worst input, and sorts them by duration, the slowest first. */
const measureRegexps = () =>
  findRegexps()
    .map((pattern) => ({ place: pattern.place, ms: slowestMs(pattern, limitMs) }))
    .toSorted((a, b) => b.ms - a.ms);

async function measureAll(): Promise<boolean> {
  const watch = await startWatch();
  const ends: (() => Promise<unknown>)[] = [watch.stop];
  try {
    const { providers, env: providerEnv } = await startProviders((end) => ends.push(end));
    const env = {
      ...watch.env,
      ...providerEnv,
      RATE_LIMIT_REQUESTS_PER_MINUTE: "1000000",
      RATE_LIMIT_TOKENS_PER_MINUTE: "1000000000000",
      RATE_LIMIT_UPLOADS_PER_MINUTE: "1000000",
      RATE_LIMIT_CONCURRENT_UPLOADS: "1000",
    };
    const service = await startService({ env, onProgress: () => {} });
    ends.push(service.stop);
    const target = { url: service.url, key: await service.newKey("hostile"), ...providers };

    const wanted = inputs.filter(({ kind, name }) => new RegExp(options.only).test(`${kind}: ${name}`));
    const all: Figures[] = [];
    for (const input of wanted) {
      const measured = await measure(input, target, watch, Number(options.rounds));
      all.push(...measured);
      for (const figures of measured) if (judge(figures, limitMs) !== "free") say(row(figures));
    }
    const regexps = "regexps".includes(options.only) ? measureRegexps() : [];
    const held = all.filter((figures) => judge(figures, limitMs) === "held");
    const busy = all.filter((figures) => judge(figures, limitMs) === "busy");
    say(`\n    held    delay     idle  process  status  input (ms; medians of ${options.rounds} maxima)`);
    for (const figures of all.toSorted((a, b) => b.heldMs - a.heldMs).slice(0, shownRows)) say(row(figures));
    say(
      `\n${wanted.length} inputs. For comparison: ${ms(harmlessMs()).trim()} ms to parse a text of 20 MB in this process;`,
    );
    say(`an idle process was delayed by ${ms(medianOf(all.map((each) => each.idleDelayMs))).trim()} ms (median).`);
    if (busy.length > 0) say(`${busy.length} over ${limitMs} ms for want of a processor: run these again.`);
    for (const { ms: tookMs, place } of regexps.slice(0, 5))
      say(`${ms(tookMs)}  ${place}, on ${attackCharacters / 1024} KB of its worst input`);
    const isSlow = (regexps[0]?.ms ?? 0) > limitMs;
    if (isSlow) say(`A regular expression took more than ${limitMs} ms.`);
    say(
      held.length > 0
        ? `${held.length} held a loop for more than ${limitMs} ms.`
        : `None held a loop for more than ${limitMs} ms.`,
    );
    return held.length === 0 && !isSlow && wanted.length + regexps.length > 0;
  } finally {
    for (const end of ends.toReversed()) await end();
  }
}

try {
  if (!(await measureAll())) process.exitCode = 1;
} catch (error) {
  process.exitCode = 1;
  say(error instanceof Error ? (error.stack ?? error.message) : String(error));
}
process.exit();
