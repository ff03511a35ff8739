/** One call as code. The key comes from the environment, so that the text does not contain it. */

interface Call {
  readonly url: string;
  readonly body: object;
}

const indented = (body: object) => JSON.stringify(body, null, 2);
/** A shell reads everything in single quotes literally, except a single quote. */
const shellQuoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

export const asCurl = ({ url, body }: Call): string =>
  `curl ${url} \\
  -H "authorization: Bearer $API_KEY" \\
  -H "content-type: application/json" \\
  -d ${shellQuoted(indented(body))}`;

export const asTypeScript = ({ url, body }: Call): string =>
  `const response = await fetch(${JSON.stringify(url)}, {
  method: "POST",
  headers: {
    authorization: \`Bearer \${process.env.API_KEY}\`,
    "content-type": "application/json",
  },
  body: JSON.stringify(${indented(body).replaceAll("\n", "\n  ")}),
});
console.log(await response.json());`;

const pythonWords: Readonly<Record<string, string>> = { true: "True", false: "False", null: "None" };

/** JSON is valid Python except for three words. They end their line, and a string's line ends with a quotation mark. */
const python = (body: object) =>
  indented(body)
    .split("\n")
    .map((line) => line.replace(/\b(?:true|false|null)(?=,?$)/, (word) => pythonWords[word] ?? word))
    .join("\n");

export const asPython = ({ url, body }: Call): string =>
  `import os, requests

response = requests.post(
    ${JSON.stringify(url)},
    headers={"authorization": f"Bearer {os.environ['API_KEY']}"},
    json=${python(body).replaceAll("\n", "\n    ")},
)
print(response.json())`;
