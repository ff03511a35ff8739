import { capitalized } from "./format.ts";

/** What the parameters of models are called, and what they do, where their names do not say it. */
const words: Readonly<Record<string, readonly [label: string, hint?: string]>> = {
  aspect_ratio: ["Aspect ratio", "Width to height."],
  cfg_scale: ["Prompt strength", "Higher values follow the prompt more closely."],
  duration: ["Duration in seconds"],
  end_image_url: ["Last frame", "The picture that the video ends with."],
  expand_prompt: ["Expand the prompt", "Lets the provider add detail to it."],
  file: ["Recording", "Sound, or a video with sound."],
  force_instrumental: ["Instrumental only", "Music without voices."],
  format: ["Output format"],
  generate_audio: ["With sound"],
  generate_audio_switch: ["With sound"],
  guidance: ["Prompt strength", "Higher values follow the prompt more closely."],
  height: ["Height in pixels"],
  image: ["Image", "To begin with, or to edit; of several, the first one is edited."],
  image_url: ["First image", "The picture to begin with, or to edit."],
  instructions: ["Instructions", "How to speak: tone, pace, accent."],
  keywords: ["Keywords", "Names and terms that occur in the recording, one a line."],
  language: ["Language", "Its ISO 639-1 code, such as en."],
  language_code: ["Language", "Its ISO 639-1 code, such as en."],
  languages: ["Languages", "The ones that may be spoken, one code a line, such as en."],
  magic_prompt_option: ["Expand the prompt", "Lets the provider add detail to it."],
  mask: ["Mask", "A picture of the same size: where it is transparent, the first image is edited."],
  moderation: ["Content filter"],
  music_length_ms: ["Length"],
  n: ["Number of images"],
  negative_prompt: ["Negative prompt", "What should not appear."],
  num_inference_steps: ["Steps", "More steps take longer and add detail."],
  output_compression: ["Compression", "Quality of JPEG and WebP in percent."],
  output_quality: ["Compression", "Quality of JPEG and WebP in percent."],
  raw: ["Raw style", "A less processed look."],
  reference_images: ["Reference images", "Pictures to go by."],
  safety_tolerance: ["Content filter", "1 is the strictest."],
  seed: ["Seed", "The same seed and parameters give a similar result."],
  similarity_boost: ["Similarity", "How close it stays to the voice, from 0 to 1."],
  speed: ["Speed", "1 is normal."],
  stability: ["Stability", "Lower values vary the expression more, from 0 to 1."],
  start_image_url: ["First frame", "The picture that the video begins with."],
  temperature: ["Temperature", "Higher values vary the result more."],
  timestamp_granularities: ["Timestamps", "For the output format verbose_json."],
  translate: ["Translate into English"],
  variation: ["Vary the image", "Needs an image and no prompt."],
  width: ["Width in pixels"],
};

interface Described {
  readonly name: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
}

/** The title of the model's schema, else what its name is known for. */
export function wordsOf({ name, title, description }: Described): { readonly label: string; readonly hint?: string } {
  const [label, hint = description] = words[name] ?? [capitalized(name.replaceAll("_", " "))];
  return { label: title ?? label, ...(hint && hint !== label && { hint: capitalized(hint) }) };
}

/** A value of a parameter, in words. */
export function optionWords(name: string, value: string): string {
  if (name.endsWith("_ms")) return `${Number(value) / 1000} s`;
  if (name === "duration") return `${value.replace(/s$/, "")} s`;
  const [, rate, kilobits] = /^mp3_(\d+)_(\d+)$/.exec(value) ?? [];
  if (rate) return `MP3, ${Number(rate) / 1000} kHz, ${kilobits} kbit/s`;
  if (/^[A-Z]{3,}$/.test(value)) return capitalized(value.toLowerCase());
  return value.replace(/_(\d+)_(\d+)$/, " $1:$2");
}
