/** A generated file in a response. Times are unix milliseconds. */
export interface GeneratedFile {
  readonly url: string;
  readonly contentType: string;
  readonly bytes: number;
  readonly expiresAt: number;
  /** Further fields of the provider. */
  readonly about: Readonly<Record<string, unknown>>;
}

const seconds = (ms: number) => Math.floor(ms / 1000);

type Lifetime = Pick<GeneratedFile, "expiresAt"> & { readonly createdAt: number };

type GeneratedImage = (Pick<GeneratedFile, "url" | "expiresAt"> | { readonly b64_json: string }) &
  Pick<GeneratedFile, "about">;

/** docs/api/inference.md, "ImageResponse". `usage`: the tokens that the provider counted, if it did. */
export const imageResponse = (
  { createdAt, expiresAt }: Lifetime,
  images: readonly GeneratedImage[],
  { usage }: Readonly<Record<string, unknown>> = {},
) => ({
  created: seconds(createdAt),
  expires_at: seconds(expiresAt),
  data: images.map(({ about, ...image }) => {
    const { expiresAt: imageExpiresAt, ...content } = { expiresAt, ...image };
    return { ...about, ...content, expires_at: seconds(imageExpiresAt) };
  }),
  ...(typeof usage === "object" && usage !== null && { usage }),
});

/** docs/api/inference.md, "MediaResponse". */
export const mediaResponse = (
  identity: Lifetime & { readonly id: string; readonly model: string },
  output: Readonly<Record<string, unknown>>,
  files: readonly GeneratedFile[],
) => ({
  id: identity.id,
  object: "media.generation" as const,
  created: seconds(identity.createdAt),
  model: identity.model,
  expires_at: seconds(identity.expiresAt),
  output,
  files: files.map(({ url, contentType, bytes, expiresAt, about }) => ({
    ...about,
    url,
    content_type: contentType,
    bytes,
    expires_at: seconds(expiresAt),
  })),
});
