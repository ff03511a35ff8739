import type { Usage } from "#catalog";
import { type Generated, type GenerationCall, type JsonObject, UpstreamFailure } from "../provider.ts";
import { type Fetching, keepFile, keepMeasured } from "./files.ts";
import { type NamedFile, partsOf } from "./parts.ts";
import { rounded, secondsAsked, secondsTold } from "./seconds.ts";

/** What a job made. */
export interface Made {
  readonly output: unknown;
  /** As the provider bills it, where it says so. */
  readonly seconds?: number | undefined;
}

/** Keeps the files of an output and counts what is to be paid. */
export async function deliver(
  fetching: Fetching,
  call: GenerationCall,
  made: Made,
  recorded: () => Promise<number>,
): Promise<Generated> {
  const { files, rest } = partsOf(made.output, call);
  if (call.task === "images") return { output: rest, usage: await keepImages(fetching, call, files, rest) };
  const [main] = files;
  const told = made.seconds ?? secondsTold(rest, main?.about);
  if (call.task === "transcription") {
    for (const file of files) await keepFile(fetching, call, file);
    if (files.length === 0 && Object.keys(rest).length === 0) throw nothing();
    const seconds = await recorded();
    return { output: rest, usage: { minute: rounded(Math.min(told ?? seconds, seconds) / 60) } };
  }
  if (!main) throw nothing();
  const usage = await keepMain(fetching, call, main, told);
  for (const file of files.slice(1)) await keepFile(fetching, call, file);
  return { output: rest, usage };
}

const nothing = () => new UpstreamFailure("unavailable", "an output without a file");

/** A video by the length that the provider tells, else that was asked for, else that the file has; never more than was asked for. */
async function keepMain(
  fetching: Fetching,
  call: GenerationCall,
  file: NamedFile,
  told: number | undefined,
): Promise<Usage> {
  if (call.task !== "video") {
    await keepFile(fetching, call, file);
    return call.task === "speech" ? { character: charactersOf(call.input) } : { request: 1 };
  }
  const asked = secondsAsked(call.input);
  const known = told ?? asked;
  if (known === undefined) return { second: rounded(await keepMeasured(fetching, call, file)) };
  await keepFile(fetching, call, file);
  return { second: rounded(Math.min(known, asked ?? known)) };
}

const spoken = ["text", "prompt", "input", "script"];

/** What is spoken, in Unicode code points. */
export function charactersOf(input: JsonObject): number {
  const text = spoken.map((field) => input[field]).find((each) => typeof each === "string" && each !== "");
  if (typeof text === "string") return Array.from(text).length;
  throw new UpstreamFailure("misconfigured", "a model whose text is in a field that is unknown");
}

const counts = ["n", "num_images", "num_outputs", "max_images", "number_of_images", "batch_size"];

/** More than were asked for are nobody's to pay; those that the provider's filter blackened are not delivered. */
async function keepImages(
  fetching: Fetching,
  call: GenerationCall,
  files: readonly NamedFile[],
  { has_nsfw_concepts: flags }: JsonObject,
): Promise<Usage> {
  const asked = counts.map((field) => Number(call.input[field] ?? Number.NaN)).find((count) => count > 0) ?? 1;
  const isFlagged = (index: number) => Array.isArray(flags) && flags[index] === true;
  const clean = files.filter((_, index) => !isFlagged(index));
  if (clean.length === 0 && files.length > 0)
    throw new UpstreamFailure("refused", "The provider's safety filter withheld what was made.", { param: "prompt" });
  let image = 0;
  let lost: UpstreamFailure | undefined;
  for (const file of clean.slice(0, asked)) {
    try {
      await keepFile(fetching, call, file);
      image++;
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      lost = error;
    }
  }
  if (image === 0) throw lost ?? nothing();
  return { image };
}
