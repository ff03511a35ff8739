import { embeddingsCodec } from "#formats";
import type { PaidRoute } from "../paid-route.ts";

export const embeddingsRoute: PaidRoute = { job: "embeddings", endpoint: "/v1/embeddings", codec: embeddingsCodec };
