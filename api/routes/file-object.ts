import { z } from "zod";
import type { Files } from "#files";
import { unixSecondsOfMs } from "../http/fields.ts";

/** The fields of a generated file that all answers have. */
export const fileFields = {
  id: z.string(),
  type: z.string().meta({ example: "image/png" }),
  bytes: z.int(),
  url: z.string(),
  expires_at: unixSecondsOfMs,
};

type Stored = Awaited<ReturnType<Files["generated"]["list"]>>[number];

export const shownFile = (file: Stored, publicUrl: string) => ({
  ...file,
  type: file.contentType,
  url: `${publicUrl}/media/${file.id}`,
});
