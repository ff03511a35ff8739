import { globSync, readFileSync } from "node:fs";
import ts from "typescript";

export interface FoundRegexp {
  readonly place: string;
  readonly source: string;
  readonly flags: string;
}

/** Every regular expression literal in the code of the service and its dashboard. */
export function findRegexps(): FoundRegexp[] {
  const found: FoundRegexp[] = [];
  for (const file of globSync("{api,workers,shared,infra,dashboard/src}/**/*.{ts,tsx}")) {
    const parsed = ts.createSourceFile(file, readFileSync(file, "utf8"), ts.ScriptTarget.Latest);
    const visit = (node: ts.Node): void => {
      if (ts.isRegularExpressionLiteral(node)) {
        const { line } = parsed.getLineAndCharacterOfPosition(node.getStart(parsed));
        const end = node.text.lastIndexOf("/");
        const place = `${file}:${line + 1}`;
        found.push({ place, source: node.text.slice(1, end), flags: node.text.slice(end + 1) });
      }
      ts.forEachChild(node, visit);
    };
    visit(parsed);
  }
  return found;
}
