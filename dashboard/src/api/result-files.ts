export interface GeneratedFile {
  readonly url: string;
  readonly contentType: string;
  readonly expiresAt: number | undefined;
}

interface Image {
  readonly url?: string;
  readonly b64_json?: string;
}

interface Answer {
  readonly expires_at?: number;
  readonly data?: readonly Image[];
  readonly files?: readonly { readonly url: string; readonly content_type: string; readonly expires_at: number }[];
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
