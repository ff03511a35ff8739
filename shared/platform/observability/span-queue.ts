import type { ReadableSpan, SpanExporter, SpanProcessor } from "@opentelemetry/sdk-trace";
import type { Clock } from "../clock.ts";
import type { Logger } from "../logger.ts";

const warnEveryMs = 60_000;

/**
 * Limits the ended spans that wait to be sent to `limit`. Logs the number of lost spans, at most once a minute until
 * shutdown: those over the limit, which the SDK drops silently, and those that the receiver did not accept. The
 * receiver's response is not logged, because it may quote the data sent.
 */
export function boundSpans(
  exporter: SpanExporter,
  limit: number,
  { clock, log }: { clock: Clock; log: Logger },
  batchBy: (exporter: SpanExporter) => SpanProcessor,
): SpanProcessor {
  let waiting = 0;
  const lost = { dropped: 0, refused: 0 };
  let lastError: string | undefined;
  let warnAfter = 0;
  let isEnding = false;

  function lose(kind: keyof typeof lost, spans: number): void {
    lost[kind] += spans;
    if (isEnding || clock.now() >= warnAfter) warn();
  }

  function warn(): void {
    if (lost.dropped + lost.refused === 0) return;
    warnAfter = clock.now() + warnEveryMs;
    log.warn(
      { err: lastError, ...lost },
      "spans were lost because the trace collector did not accept them, or not fast enough",
    );
    lost.dropped = 0;
    lost.refused = 0;
  }

  const batches = batchBy({
    export(spans: ReadableSpan[], done) {
      waiting -= spans.length;
      exporter.export(spans, (result) => {
        done(result);
        if (result.code === 0) return;
        lastError = result.error?.message;
        lose("refused", spans.length);
      });
    },
    forceFlush: () => exporter.forceFlush?.() ?? Promise.resolve(),
    shutdown: () => exporter.shutdown(),
  });

  return {
    onStart() {},
    onEnd(span) {
      if (waiting >= limit) return lose("dropped", 1);
      waiting += 1;
      batches.onEnd(span);
    },
    forceFlush: () => batches.forceFlush(),
    shutdown() {
      // The process may end before a receiver that hangs has responded.
      isEnding = true;
      warn();
      return batches.shutdown();
    },
  };
}
