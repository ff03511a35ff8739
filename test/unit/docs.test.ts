import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { pages } from "../../docs/generate.ts";

const thisFile = "test/unit/docs.test.ts";
const folders = ["api", "workers", "shared", "infra", "test", "docs"];
const files = (folder: string, ending: RegExp): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => ending.test(file))
    .map((file) => join(folder, file));
const documents = [...readdirSync(".").filter((file) => file.endsWith(".md")), ...files("docs", /\.md$/)];
const text = (file: string) => readFileSync(file, "utf8");

/** The anchors that GitHub generates for a page's headings. */
const anchors = (page: string): Set<string> =>
  new Set(
    [...text(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );

describe("documents", () => {
  test.each(Object.entries(pages()))("docs/%s is current (npm run docs)", (name, current) => {
    expect(text(join("docs", name))).toBe(current);
  });

  test.each(documents)("%s links only to pages and headings that exist", (page) => {
    const prose = text(page).replace(/^```[\s\S]*?^```/gm, "");
    const broken = [...prose.matchAll(/\]\((?!https?:)([^)\s]*)\)/g)].flatMap(([, link = ""]) => {
      const [path = "", anchor] = link.split("#");
      const target = path === "" ? page : normalize(join(dirname(page), path));
      const isThere = existsSync(target) && (anchor === undefined || anchors(target).has(anchor));
      return isThere ? [] : [link];
    });
    expect(broken).toEqual([]);
  });

  test("the README fits on four screens", () => {
    expect(text("README.md").split("\n").length).toBeLessThanOrEqual(200);
  });

  test("code and documents name only files of the repository", () => {
    const sources = [...folders.flatMap((folder) => files(folder, /\.(ts|md)$/)), ...documents];
    const missing = sources.flatMap((source) =>
      [
        ...text(source)
          .replace(/\]\([^)]*\)/g, "")
          .matchAll(/(?<![\w./@-])((?:docs|api|workers|shared|infra|test)\/[\w./-]*\.(?:ts|md|json))\b/g),
      ]
        .map(([, path = ""]) => path)
        .filter((path) => !existsSync(path))
        .map((path) => `${source}: ${path}`),
    );
    expect(missing).toEqual([]);
  });

  test("comments cite documents by their path", () => {
    const sources = folders.flatMap((folder) => files(folder, /\.ts$/)).filter((source) => source !== thisFile);
    const unnamed = /\bARCHITECTURE\b|wire-details(?!\.md)|\bspecification, (?:part|section)/i;
    expect(sources.filter((source) => unnamed.test(text(source)))).toEqual([]);
  });

  test("comments cite headings, bold names and parts that their document has", () => {
    const cited = /(docs\/[\w/-]+\.md)(?:,? \(?((?:"[^"]{1,60}"(?:, )?)+)|, part (\d+))/g;
    const missing = folders
      .flatMap((folder) => files(folder, /\.ts$/))
      .flatMap((source) =>
        [
          ...text(source)
            .replace(/\n *(?:\*|\/\/) ?/g, " ")
            .matchAll(cited),
        ].flatMap(([, page = "", quoted, part]) => {
          const names = part
            ? [`Part ${part}.`]
            : [...(quoted ?? "").matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name);
          const has = (name: string) =>
            text(page).includes(`**${name}**`) ||
            new RegExp(`^#+ ${name.replaceAll(".", "\\.")}`, "m").test(text(page));
          return names.filter((name) => !has(name)).map((name) => `${source}: ${page}, ${name}`);
        }),
      );
    expect(missing).toEqual([]);
  });
});
