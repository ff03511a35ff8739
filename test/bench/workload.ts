import type { Address } from "./load.ts";

/** The request and the response of every measured call, whatever gateway is between. */
const chunksPerStream = 40;
export const prompt = "Tell me, in a few plain words, how a queue keeps a busy service calm. ".repeat(2).slice(0, 100);
export const jsonContent = "The quick brown fox jumps over the lazy dog. ".repeat(4).trim();
export const streamWords = Array.from({ length: chunksPerStream }, (_, index) => (index === 0 ? "Once" : " more"));
/** A stream at the pace of a real model: a chunk every 33 ms. */
export const pacedWords = Array.from({ length: 100 }, () => " more");
export const pacedGapMs = 33;
/** The same usage for every response, so that every call costs the same. */
export const usage = {
  prompt_tokens: 25,
  completion_tokens: chunksPerStream,
  total_tokens: 25 + chunksPerStream,
};

export const requestBody = (model: string, stream: boolean): string =>
  JSON.stringify({
    model,
    messages: [{ role: "user", content: prompt }],
    ...(stream && { stream: true, stream_options: { include_usage: true } }),
  });

export interface Target extends Address {
  readonly model: string;
}

/** Checks that a target forwards the mock's whole response before its speed is measured. */
export async function proveTarget(name: string, target: Target): Promise<void> {
  const ask = async (stream: boolean) => {
    const response = await fetch(target.origin + target.path, {
      method: "POST",
      headers: target.headers,
      body: requestBody(target.model, stream),
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${name} answers ${response.status}: ${text.slice(0, 500)}`);
    return text;
  };
  interface Answer {
    readonly choices: readonly { readonly message?: { content: string }; readonly delta?: { content?: string } }[];
    readonly usage?: { readonly total_tokens: number } | null;
  }
  const expect = (what: string, got: unknown, wanted: unknown) => {
    if (got !== wanted) throw new Error(`${name}: the ${what} is ${String(got)} and should be ${String(wanted)}`);
  };
  const json = JSON.parse(await ask(false)) as Answer;
  expect("answer", json.choices[0]?.message?.content, jsonContent);
  expect("usage", json.usage?.total_tokens, usage.total_tokens);

  const data = (await ask(true)).split("\n").flatMap((line) => (line.startsWith("data: ") ? [line.slice(6)] : []));
  expect("end of the stream", data.pop(), "[DONE]");
  const events = data.map((text) => JSON.parse(text) as Answer);
  const words = events.flatMap((event) => event.choices[0]?.delta?.content ?? []);
  expect("streamed text", words.join(""), streamWords.join(""));
  expect("usage of the stream", events.at(-1)?.usage?.total_tokens, usage.total_tokens);
}
