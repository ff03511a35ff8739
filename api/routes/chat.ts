import { chatCodec } from "#formats";
import type { PaidRoute } from "../paid-route.ts";

export const chatRoute: PaidRoute = { job: "chat", endpoint: "/v1/chat/completions", codec: chatCodec, format: "chat" };
