import { type AST, RegExpParser } from "@eslint-community/regexpp";
import { analyse } from "scslre";

type Pattern = { readonly source: string; readonly flags: string };

export const attackCharacters = 128 * 1024;
const letters = Array.from({ length: 127 }, (_, code) => String.fromCharCode(126 - code));

/** Texts that an element matches, shortest first. */
function samplesOf(element: AST.Element, flags: string): string[] {
  if (element.type === "Character") return [String.fromCodePoint(element.value)];
  if (element.type === "CharacterSet" || element.type === "CharacterClass") {
    const one = new RegExp(`^(?:${element.raw})$`, flags.replace(/[gy]/g, ""));
    const some = letters.filter((letter) => one.test(letter));
    return [...new Set([some[0], some.at(-1)])].filter((each) => each !== undefined);
  }
  if (element.type === "Quantifier")
    return samplesOf(element.element, flags).map((each) => each.repeat(Math.max(1, Math.min(element.min, 300))));
  if (element.type === "Group" || element.type === "CapturingGroup")
    return element.alternatives.map((each) => prefixesOf(each, flags).at(-1) ?? "");
  return [];
}

/** Texts that match the elements of an alternative up to each position. */
function prefixesOf({ elements }: AST.Alternative, flags: string): string[] {
  const prefixes: string[] = [];
  for (const element of elements) prefixes.push((prefixes.at(-1) ?? "") + (samplesOf(element, flags)[0] ?? ""));
  return prefixes;
}

function alternativesOf(pattern: AST.Pattern): AST.Alternative[] {
  const found: AST.Alternative[] = [];
  const visit = (each: AST.Alternative | AST.Element): void => {
    if (each.type === "Alternative") {
      found.push(each);
      each.elements.forEach(visit);
    } else if (each.type === "Quantifier") visit(each.element);
    else if ("alternatives" in each) each.alternatives.forEach(visit);
  };
  pattern.alternatives.forEach(visit);
  return found;
}

/** Texts on which a search is slow if anything before a failure can be repeated. */
function attacksOn({ source, flags }: Pattern): string[] {
  const mode = { unicode: flags.includes("u"), unicodeSets: flags.includes("v") };
  const pattern = new RegExpParser().parsePattern(source, 0, source.length, mode);
  const pumps = new Set<string>();
  for (const alternative of alternativesOf(pattern)) {
    for (const prefix of prefixesOf(alternative, flags)) pumps.add(prefix);
    for (const element of alternative.elements) for (const each of samplesOf(element, flags)) pumps.add(each);
  }
  pumps.delete("");
  const begins = ["", ...pattern.alternatives.flatMap((each) => prefixesOf(each, flags).at(-1) ?? [])];
  return [...pumps].flatMap((pump) => {
    const pumped = pump.repeat(Math.ceil(attackCharacters / pump.length));
    return [...new Set(begins)].flatMap((begin) => [`${begin}${pumped}\n\0`, `${begin}${pumped}~ ${begin}`]);
  });
}

/** The duration of the slowest attack, the faster of two tries. Stops after one attack beyond `enoughMs`. */
export function slowestMs(pattern: Pattern, enoughMs: number): number {
  const regexp = new RegExp(pattern.source, pattern.flags);
  let slowest = 0;
  for (const attack of attacksOn(pattern)) {
    const run = () => {
      const start = performance.now();
      attack.replace(regexp, "");
      return performance.now() - start;
    };
    const first = run();
    slowest = Math.max(slowest, first > enoughMs ? Math.min(first, run()) : first);
    if (slowest > enoughMs) break;
  }
  return slowest;
}

/** Linear patterns take a few milliseconds, quadratic ones about a second. */
const limitMs = 100;

/** The reason why a pattern may take more than linear time; undefined if there is none. */
export function reasonSlow(pattern: Pattern): string | undefined {
  const [report] = analyse(pattern, { maxReports: 1 }).reports;
  if (report) return report.exponential ? "exponential" : "polynomial";
  const ms = slowestMs(pattern, limitMs);
  return ms > limitMs ? `${Math.round(ms)} ms for ${attackCharacters / 1024} KB` : undefined;
}
