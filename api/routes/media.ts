import { mediaCodec } from "#formats";
import type { PaidRoute } from "../paid-route.ts";

export const mediaRoute: PaidRoute = {
  job: "media",
  endpoint: "/v1/media/generations",
  codec: mediaCodec,
  endsAtSyncTimeout: true,
  payable: true,
};
