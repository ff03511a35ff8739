import Document from "markdown-to-jsx/react";
import type { ComponentProps } from "react";
import { Code } from "../../components/code.tsx";

const Anchor = ({ href, children }: ComponentProps<"a">) => (
  <a href={href} target="_blank" rel="noreferrer" className="text-accent underline">
    {children}
  </a>
);

/** A model may have read a page that wants to learn what was said: its images are links, which load nothing. */
const Picture = ({ src, alt }: ComponentProps<"img">) => <Anchor href={src}>{alt || src}</Anchor>;

const Table = ({ children }: ComponentProps<"table">) => (
  <div className="overflow-x-auto">
    <table>{children}</table>
  </div>
);

/** A block of code is `<pre><code class="language-...">`. */
function Block({ children }: ComponentProps<"pre">) {
  const { className = "", children: text } = (children as { props?: ComponentProps<"code"> } | null)?.props ?? {};
  const [, language = "code"] = /language-([\w+#.-]+)/.exec(className) ?? [];
  const lines = [text].flat().filter((part) => typeof part === "string");
  return <Code text={lines.join("")} what={language} />;
}

/** The page has headings of its own, above these; the library's ids would be there twice. */
const heading = (Level: "h3" | "h4" | "h5" | "h6") =>
  function Heading({ children }: ComponentProps<"h3">) {
    return <Level>{children}</Level>;
  };

const Checkbox = ({ checked }: ComponentProps<"input">) => <span>{checked ? "☑" : "☐"}</span>;

const overrides = {
  a: Anchor,
  img: Picture,
  table: Table,
  pre: Block,
  input: Checkbox,
  h1: heading("h3"),
  h2: heading("h4"),
  h3: heading("h5"),
  h4: heading("h6"),
  h5: heading("h6"),
  h6: heading("h6"),
};
const options = {
  disableParsingRawHTML: true,
  disableFrontmatter: true,
  forceBlock: true,
  wrapper: "div" as const,
  overrides,
};

/** An answer's Markdown, without HTML. */
export const Markdown = ({ text }: { readonly text: string }) => (
  <Document className="markdown" options={options}>
    {text}
  </Document>
);
