import { imagesCodec } from "#formats";
import type { PaidRoute } from "../paid-route.ts";

export const imagesRoute: PaidRoute = {
  job: "image",
  endpoint: "/v1/images/generations",
  codec: imagesCodec,
  endsAtSyncTimeout: true,
  payable: true,
};
