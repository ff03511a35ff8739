/**
 * Part of `npm run check`: finds regular expressions that take more than linear time, by analysis (scslre, which
 * eslint-plugin-regexp is built on) and by running each on repetitions of texts that its parts match.
 */
import { reasonSlow } from "./attack-regexps.ts";
import { findRegexps } from "./find-regexps.ts";

const found = findRegexps();
for (const pattern of found) {
  const reason = reasonSlow(pattern);
  if (reason === undefined) continue;
  process.stderr.write(
    `${pattern.place}: /${pattern.source}/${pattern.flags} may take more than linear time: ${reason}\n`,
  );
  process.exitCode = 1;
}
process.stdout.write(`${found.length} regular expressions checked\n`);
