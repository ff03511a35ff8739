import { responsesCodec } from "#formats";
import type { PaidRoute } from "../call.ts";

export const responsesRoute: PaidRoute = {
  job: "chat",
  endpoint: "/v1/responses",
  codec: responsesCodec,
  format: "responses",
};
