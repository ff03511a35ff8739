import type { Request } from "express";
import { z } from "zod";
import { invalidValue } from "#errors";

const tagsHeader = "x-xm-tags";
const maxTags = 10;
const maxCharacters = 64;
/** Printable ASCII, without the comma that separates tags. */
const tag = /^[\x20-\x2b\x2d-\x7e]+$/;

/** The header in the OpenAPI document. */
export const tagsField = {
  [tagsHeader]: z
    .string()
    .optional()
    .meta({ example: "team-a,feature=search" })
    .describe(
      "At most 10 tags of 1 to 64 printable ASCII characters, separated by commas, by which usage can be summed (`GET /v1/usage?group_by=tag`)",
    ),
};

/** The tags of a request, each once. Undefined without the header. Throws a 400 that names it. */
export function tagsOf(req: Request): readonly string[] | undefined {
  const header = req.get(tagsHeader);
  if (header === undefined) return undefined;
  const refused = (why: string) => invalidValue(tagsHeader, `${tagsHeader}: ${why}.`);
  // No allowed header is longer, and a hostile one is not split.
  if (header.length > 4_096) throw refused(`has more than ${maxTags} tags`);
  const tags = [...new Set(header.split(",").map((each) => each.trim()))];
  for (const each of tags) {
    if (each === "") throw refused("a tag is empty");
    if (each.length > maxCharacters) throw refused(`a tag has more than ${maxCharacters} characters`);
    if (!tag.test(each)) throw refused("a tag has characters that are not printable ASCII");
  }
  if (tags.length > maxTags) throw refused(`has more than ${maxTags} tags`);
  return tags;
}
