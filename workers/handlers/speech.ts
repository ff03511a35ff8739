import { upstreamError } from "#errors";
import { detect } from "#files";
import { audioType, estimateTokens, mediaInput, type SpeechStream } from "#formats";
import type { Generated, GenerationCall } from "../providers/index.ts";
import { type Answer, type CallContext, type CountedUsage, FailedWork, failureReason } from "../run-call/context.ts";
import { isHandedOver } from "../running.ts";
import { inInput, prepare, withJob } from "./generation.ts";

/** Streams speech while it is generated, as bytes or as events. Nothing is stored. */
export async function streamSpeech(call: CallContext): Promise<Answer> {
  const { request, model, catalog, upstreams, disconnected, reply } = call;
  const parsed = mediaInput(request);
  const { input, ask, isResumable } = await prepare(call, parsed);
  let generated: Generated | undefined;
  let bytes = 0;
  try {
    const items = await upstreams.stream(withJob(call), async (candidate, signal, span) =>
      piecesOf((store) => ask(candidate, signal, span, store)),
    );
    const { type, open } = writers[request["stream"] as SpeechStream];
    const writer = open();
    for await (const item of items) {
      if (!Buffer.isBuffer(item)) {
        generated = item;
        continue;
      }
      if (bytes === 0) reply.announce({ "content-type": type ?? (await typeOf(item, input["format"])) });
      for (const piece of slicesOf(item)) {
        bytes += piece.length;
        // The provider must be paid either way, so its work is finished even if the caller disconnects.
        if (!disconnected.aborted) await reply.write(writer.write(piece), bytes);
      }
    }
    if (!generated || bytes === 0) throw upstreamError("The upstream generated nothing.");
    return {
      usage: generated.usage,
      estimated: false,
      input,
      text: writer.end(String(input["text"])),
      isResumable: isResumable(),
    };
  } catch (error) {
    const named = inInput(error);
    await reply.flush().catch(() => undefined);
    const isBegun = reply.delivered() > 0 || (disconnected.aborted && bytes > 0);
    const counted = isBegun && !isHandedOver(call.signal) ? inputOf(catalog.units(model, input, new Map())) : undefined;
    throw new FailedWork(failureReason(call.signal, named), { counted, isResumable: isResumable() && !isBegun });
  }
}

/** Usage of interrupted speech: what the provider bills for the text. */
const inputOf = ({ character }: CountedUsage["usage"]): CountedUsage | undefined =>
  character === undefined ? undefined : { usage: { character }, estimated: true };

/** Yields the file that a call generates piece by piece as it arrives, then the result. */
async function* piecesOf(
  generate: (store: GenerationCall["store"]) => Promise<Generated>,
): AsyncGenerator<Buffer | Generated, void, undefined> {
  const { readable, writable } = new TransformStream<Buffer, Buffer>();
  const writer = writable.getWriter();
  const generating = generate(async (body) => {
    for await (const piece of Buffer.isBuffer(body) ? [body] : body) await writer.write(piece);
  });
  generating
    .then(
      () => writer.close(),
      (error: unknown) => writer.abort(error),
    )
    .catch(() => {});
  yield* readable;
  yield await generating;
}

/** A multiple of 3, so that only the last piece is padded in base64. */
const sliceBytes = 48 * 1024;

function* slicesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += sliceBytes) yield bytes.subarray(at, at + sliceBytes);
}

const typeOf = async (head: Buffer, format: unknown) => audioType((await detect(head))?.mime, format);

interface Writer {
  /** The content type, if it is not the audio's. */
  readonly type?: string;
  readonly open: () => { write(piece: Buffer): string; end(spoken: string): string };
}

const eventOf = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;

const writers: Readonly<Record<SpeechStream, Writer>> = {
  /** The joined pieces are the base64 of all bytes: bytes beyond a multiple of 3 wait for the next piece. */
  audio: {
    open: () => {
      let rest: Buffer = Buffer.alloc(0);
      return {
        write(piece) {
          const bytes = Buffer.concat([rest, piece]);
          const whole = bytes.length - (bytes.length % 3);
          rest = bytes.subarray(whole);
          return bytes.toString("base64", 0, whole);
        },
        end: () => rest.toString("base64"),
      };
    },
  },
  /** OpenAI's events. Speech is billed by the character; the tokens are an estimate. */
  sse: {
    type: "text/event-stream; charset=utf-8",
    open: () => ({
      write: (piece) => eventOf({ type: "speech.audio.delta", audio: piece.toString("base64") }),
      end(spoken) {
        const input_tokens = estimateTokens(Buffer.byteLength(spoken));
        const usage = { input_tokens, output_tokens: 0, total_tokens: input_tokens };
        return eventOf({ type: "speech.audio.done", usage });
      },
    }),
  },
};
