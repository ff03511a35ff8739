import { request as httpRequest } from "node:http";
import type { Client } from "./service.ts";

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, never> & { error?: { code: string } };
}

/** The headers of a browser's request from the dashboard's own page. */
const ofPage = { "sec-fetch-site": "same-origin" };

/** A browser's request: `fetch` would replace `Sec-Fetch-Site`, `Origin` and cookies. */
export function browse(
  { baseUrl }: Pick<Client, "baseUrl">,
  method: string,
  path: string,
  { cookie, body, headers = ofPage }: { cookie?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const all = {
    ...headers,
    ...(cookie && { cookie }),
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const request = httpRequest(`${baseUrl}${path}`, { method, headers: all }, (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const isJson = response.headers["content-type"]?.startsWith("application/json");
      const entries = Object.entries(response.headersDistinct).map(([name, values]) => [
        name,
        values?.join("\n") ?? "",
      ]);
      const answer = isJson ? (JSON.parse(text) as Answer["body"]) : ({ text } as unknown as Answer["body"]);
      resolve({ status: response.statusCode ?? 0, headers: new Headers(entries as [string, string][]), body: answer });
    });
  });
  request.on("error", reject);
  request.end(body === undefined ? undefined : JSON.stringify(body));
  return promise;
}

/** The cookie that a response sets, in the form of the next request. */
export const cookieOf = ({ headers }: Pick<Answer, "headers">): string =>
  (headers.get("set-cookie") ?? "").split(";")[0] ?? "";

export async function signIn(service: Pick<Client, "baseUrl">, credential: object): Promise<string> {
  const answer = await browse(service, "POST", "/dashboard/session", { body: credential });
  if (answer.status !== 200) throw new Error(`sign-in: ${answer.status} ${JSON.stringify(answer.body)}`);
  return cookieOf(answer);
}
