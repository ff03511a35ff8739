import { base, errorOf, unreachable } from "./client.ts";

export interface GeneratedFile {
  readonly url: string;
  readonly contentType: string;
  readonly expiresAt: number | undefined;
}

export interface Generated {
  readonly requestId: string | null;
  readonly costUsd: string | undefined;
  readonly files: readonly GeneratedFile[];
  /** Output other than files, such as a transcript. */
  readonly output: unknown;
}

interface Image {
  readonly url?: string;
  readonly b64_json?: string;
}

interface Answer {
  readonly expires_at?: number;
  readonly data?: readonly Image[];
  readonly files?: readonly { readonly url: string; readonly content_type: string; readonly expires_at: number }[];
  readonly output?: unknown;
}

/** The content policy forbids data: URLs, so base64 images become object URLs. */
function imageUrl(base64: string): string {
  const bytes = Uint8Array.from(atob(base64), (char) => char.codePointAt(0) ?? 0);
  return URL.createObjectURL(new Blob([bytes], { type: "image/png" }));
}

/** The files of an answer of any endpoint. */
export function filesOf({ data = [], files = [], expires_at }: Answer): readonly GeneratedFile[] {
  // Other endpoints have other data.
  const images = (Array.isArray(data) ? data : []).flatMap(({ url, b64_json }: Image) =>
    url || b64_json ? [{ url: url ?? imageUrl(b64_json ?? ""), contentType: "image/png", expiresAt: expires_at }] : [],
  );
  return [
    ...images,
    ...files.map((file) => ({ url: file.url, contentType: file.content_type, expiresAt: file.expires_at })),
  ];
}

/** Images, video, audio and other media: one call, one response. Throws an ApiError. */
export async function generate(endpoint: string, body: object, signal: AbortSignal): Promise<Generated> {
  const response = await fetch(`${base}${endpoint}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  }).catch(unreachable);
  if (!response.ok) throw await errorOf(response);
  const answer = (await response.json()) as Answer;
  return {
    requestId: response.headers.get("x-request-id"),
    costUsd: response.headers.get("x-xm-cost-usd") ?? undefined,
    files: filesOf(answer),
    output: answer.output,
  };
}
