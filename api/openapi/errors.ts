import { z } from "zod";
import { errorKinds } from "#errors";

/** docs/api/inference.md, "Error body". */
export const errorBody = z
  .object({
    error: z.object({
      message: z.string(),
      type: z.enum([...new Set(Object.values(errorKinds).map(({ type }) => type))]),
      code: z.enum(Object.keys(errorKinds)).nullable(),
      param: z.string().nullable().describe("The field at fault"),
    }),
    request_id: z.string(),
  })
  .meta({ id: "Error" });
