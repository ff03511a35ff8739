import { createSafeFetch } from "#platform/safe-fetch";
import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import type { ProviderClient } from "../wire/provider-client.ts";
import { images } from "./images.ts";
import { speech } from "./speech.ts";
import { video } from "./video.ts";

export function createGeneration(provider: ProviderClient) {
  const safeFetch = createSafeFetch({ clock: provider.clock, trusted: provider.origin });
  return {
    async generate(call: GenerationCall): Promise<Generated> {
      switch (call.task) {
        case "images":
          return images(provider, call);
        case "video":
          return video(provider, safeFetch, call);
        case "speech":
          return speech(provider, call);
        case "transcription":
        case "music":
          throw new UpstreamFailure("misconfigured", `this kind of upstream has no ${call.task}`);
      }
    },
    close: () => safeFetch.close(),
  };
}
