/** One part of a `multipart/form-data` body, in its raw form. */
export interface FormPart {
  readonly name: string;
  /** The name of a file, if it is one. */
  readonly filename?: string;
  readonly type?: string;
  readonly bytes: Buffer;
}

/** Splits a form by its boundary and does nothing else, so that deviations from RFC 7578 show. */
export function partsOf(contentType: string, bytes: Buffer): FormPart[] {
  const boundary = /^multipart\/form-data; ?boundary=([^;"]+)$/.exec(contentType)?.[1];
  if (boundary === undefined) throw new Error(`no form: ${contentType}`);
  const pieces = bytes.toString("latin1").split(`--${boundary}`);
  if (pieces.shift() !== "" || pieces.pop() !== "--\r\n") throw new Error("a form that does not begin or end as one");
  return pieces.map((piece) => {
    const [, head, content] = /^\r\n([\s\S]*?)\r\n\r\n([\s\S]*)\r\n$/.exec(piece) ?? [];
    const [, name, , filename] =
      /^content-disposition: form-data; name="([^"]*)"(; filename="([^"]*)")?/i.exec(head ?? "") ?? [];
    if (content === undefined || name === undefined) throw new Error(`a part without a name: ${head}`);
    const type = /\r\ncontent-type: (.*)$/i.exec(head ?? "")?.[1];
    return {
      name,
      ...(filename !== undefined && { filename }),
      ...(type !== undefined && { type }),
      bytes: Buffer.from(content, "latin1"),
    };
  });
}

/** The text fields in the form of a JSON body. */
export const fieldsOf = (parts: readonly FormPart[]): Record<string, unknown> =>
  Object.fromEntries(
    parts.filter(({ filename }) => filename === undefined).map(({ name, bytes }) => [name, bytes.toString()]),
  );
