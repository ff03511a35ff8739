import { embeddingsCodec } from "#formats";
import type { PaidRoute } from "../call.ts";

export const embeddingsRoute: PaidRoute = { job: "embeddings", endpoint: "/v1/embeddings", codec: embeddingsCodec };
