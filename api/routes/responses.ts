import { responsesCodec } from "#formats";
import type { PaidRoute } from "../paid-route.ts";

export const responsesRoute: PaidRoute = {
  job: "chat",
  endpoint: "/v1/responses",
  codec: responsesCodec,
  format: "responses",
};
