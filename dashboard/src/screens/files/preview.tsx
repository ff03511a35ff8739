interface Props {
  readonly url: string | null;
  readonly mime: string;
  readonly name: string;
}

const frame = "h-44 w-full rounded-lg bg-raised object-contain";

/** A preview of a file's image, video or sound. */
export function Preview({ url, mime, name }: Props) {
  if (url && mime.startsWith("image/"))
    return <img src={url} alt={`Preview of ${name}`} loading="lazy" className={frame} />;
  // Generated files and uploads have no captions.
  if (url && mime.startsWith("video/"))
    // oxlint-disable-next-line jsx-a11y/media-has-caption
    return <video src={url} controls preload="metadata" aria-label={`Preview of ${name}`} className={frame} />;
  if (url && mime.startsWith("audio/"))
    return (
      <div className={`${frame} grid place-items-center px-2`}>
        {/* oxlint-disable-next-line jsx-a11y/media-has-caption */}
        <audio src={url} controls preload="metadata" aria-label={`Preview of ${name}`} className="w-full" />
      </div>
    );
  return <div className={`${frame} grid place-items-center text-xs text-muted`}>No preview</div>;
}
