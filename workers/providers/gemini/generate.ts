import { createOutside } from "#platform/outside";
import { type Generated, type GenerationCall, UpstreamFailure } from "../provider.ts";
import type { Maker } from "../wire/maker.ts";
import { images } from "./images.ts";
import { speech } from "./speech.ts";
import { video } from "./video.ts";

export function createGeneration(maker: Maker) {
  const outside = createOutside({ clock: maker.clock, trusted: maker.origin });
  return {
    async generate(call: GenerationCall): Promise<Generated> {
      switch (call.task) {
        case "images":
          return images(maker, call);
        case "video":
          return video(maker, outside, call);
        case "speech":
          return speech(maker, call);
        case "transcription":
        case "music":
          throw new UpstreamFailure("misconfigured", `this kind of upstream has no ${call.task}`);
      }
    },
    close: () => outside.close(),
  };
}
