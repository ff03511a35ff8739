import { randomUUID } from "node:crypto";
import type { Context, Span as SdkSpan, SpanContext, SpanKind } from "@opentelemetry/api";
import serviceManifest from "../../../package.json" with { type: "json" };
import { atMost, type Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import type { Logger } from "../logger.ts";
import { boundSpans } from "./span-queue.ts";

/**
 * Traces in OpenTelemetry's model, sent by OTLP over HTTP (protobuf). Without OTEL_EXPORTER_OTLP_ENDPOINT there is no
 * `Tracing` and the SDK is not loaded: every use is `span?.set(...)`, whose arguments are then not even evaluated.
 * Spans are passed on explicitly rather than through an AsyncLocalStorage, which costs time at each promise of each
 * call.
 */
export interface Tracing {
  /** Starts the first span of a call in this process. `traceparent` is the caller's header, which may be anything. */
  begin(name: string, options: SpanOptions & { readonly traceparent: string | undefined }): Span;
  /** Starts a span whose parent is in another of our processes. Returns undefined if the parent was not traced. */
  join(name: string, options: SpanOptions & { readonly traceparent: string | undefined }): Span | undefined;
  /** Records prompts and responses if true. */
  readonly capturesContent: boolean;
  /** Sends pending spans, for a limited time. */
  close(): Promise<void>;
}

/** Attributes with undefined values are not recorded. */
export type Attributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

export interface SpanOptions {
  readonly kind?: Lowercase<keyof typeof SpanKind>;
  /** Unix milliseconds. Defaults to now. */
  readonly at?: number | undefined;
  readonly attributes?: Attributes;
}

export interface Span {
  /** Included in the payload of a job. */
  readonly traceparent: string;
  /** Included in log lines. */
  readonly ids: { readonly trace_id: string; readonly span_id: string };
  /** If false, nothing is recorded, and each child is the span itself. */
  readonly isSampled: boolean;
  child(name: string, options?: SpanOptions): Span;
  set(attributes: Attributes): void;
  event(name: string, at?: number): void;
  /** Marks the span as failed, with one of a few types. */
  fail(type: string): void;
  end(at?: number): void;
}

/** Spans over this limit are dropped, so that an unavailable receiver costs a bounded amount of memory. */
const maxQueuedSpans = 2_048;
const maxBatchSpans = 512;
const exportTimeoutMs = 5_000;
/** The time for which a shutdown waits for the receiver. */
const lastExportMs = 2_000;
/** Characters per attribute. Prompts are truncated further (`workers/tracing/messages.ts`). */
const maxAttributeLength = 20_000;

/** Returns undefined if no receiver is configured. */
export async function startTracing(
  config: Pick<Config, keyof Config & `OTEL_${string}`>,
  deps: { process: "api" | "worker"; clock: Clock; log: Logger; random?: () => number },
): Promise<Tracing | undefined> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint } = config;
  if (endpoint === undefined) return undefined;
  const { clock, random = Math.random } = deps;
  const [api, sdk, { OTLPTraceExporter }, resources] = await Promise.all([
    import("@opentelemetry/api"),
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-proto"),
    import("@opentelemetry/resources"),
  ]);
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/(?<!\/)\/+$/, "")}/v1/traces`,
    headers: pairsOf(config.OTEL_EXPORTER_OTLP_HEADERS),
    timeoutMillis: exportTimeoutMs,
    keepAlive: true,
  });
  const provider = new sdk.TracerProvider({
    resource: resources.defaultResource().merge(
      resources.resourceFromAttributes({
        "service.version": serviceManifest.version,
        "service.instance.id": randomUUID(),
        ...pairsOf(config.OTEL_RESOURCE_ATTRIBUTES),
        "service.name": config.OTEL_SERVICE_NAME ?? `inference-${deps.process}`,
      }),
    ),
    // Sampling is decided in `begin`, and by the parent from then on.
    sampler: new sdk.ParentBasedSampler({ root: new sdk.AlwaysOnSampler() }),
    spanLimits: { attributeValueLengthLimit: maxAttributeLength },
    spanProcessors: [
      boundSpans(exporter, maxQueuedSpans, deps, (counted) => {
        const sizes = { maxQueueSize: maxQueuedSpans, maxExportBatchSize: maxBatchSpans };
        // The exporter's own limit comes first.
        const times = {
          scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
          exportTimeoutMillis: exportTimeoutMs + 1_000,
        };
        return new sdk.BatchSpanProcessor({ exporter: counted, ...sizes, ...times });
      }),
    ],
  });
  const tracer = provider.getTracer("inference-service", serviceManifest.version);
  const kinds: Readonly<Record<Lowercase<keyof typeof SpanKind>, SpanKind>> = {
    internal: api.SpanKind.INTERNAL,
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    producer: api.SpanKind.PRODUCER,
    consumer: api.SpanKind.CONSUMER,
  };
  const contextOf = (parent: SpanContext): Context => api.trace.setSpanContext(api.ROOT_CONTEXT, parent);

  const start = (name: string, { kind = "internal", at, attributes = {} }: SpanOptions, parent?: Context): Span =>
    wrap(
      tracer.startSpan(
        name,
        { kind: kinds[kind], startTime: at ?? clock.now(), attributes: defined(attributes) },
        parent ?? api.ROOT_CONTEXT,
      ),
    );

  function wrap(span: SdkSpan): Span {
    const own = span.spanContext();
    let asParent: Context | undefined;
    return {
      traceparent: `00-${own.traceId}-${own.spanId}-01`,
      ids: { trace_id: own.traceId, span_id: own.spanId },
      isSampled: true,
      child: (name, options = {}) => start(name, options, (asParent ??= contextOf(own))),
      set: (attributes) => void span.setAttributes(defined(attributes)),
      event: (name, at = clock.now()) => void span.addEvent(name, at),
      fail: (type) => void span.setAttribute("error.type", type).setStatus({ code: api.SpanStatusCode.ERROR }),
      end: (at = clock.now()) => span.end(at),
    };
  }

  const ratios: Partial<Record<Config["OTEL_TRACES_SAMPLER"], number>> = {
    always_on: 1,
    parentbased_always_on: 1,
    always_off: 0,
    parentbased_always_off: 0,
  };
  const ratio = ratios[config.OTEL_TRACES_SAMPLER] ?? config.OTEL_TRACES_SAMPLER_ARG;
  const isParentBased = config.OTEL_TRACES_SAMPLER.startsWith("parentbased_");
  const ids = new sdk.RandomIdGenerator();

  return {
    capturesContent: config.OTEL_CAPTURE_CONTENT,
    begin(name, { traceparent, ...options }) {
      const caller = parseTraceparent(traceparent);
      // Sampled at random instead of by the trace id, which the caller can choose. The caller's flag can only reduce
      // the share.
      const isSampled = (!isParentBased || caller?.isSampled !== false) && random() < ratio;
      if (!isSampled) return unsampled(caller?.traceId ?? ids.generateTraceId(), ids.generateSpanId());
      return start(name, options, caller && contextOf({ ...remote(caller), traceFlags: api.TraceFlags.SAMPLED }));
    },
    join(name, { traceparent, ...options }) {
      const parent = parseTraceparent(traceparent);
      if (!parent) return undefined;
      if (!parent.isSampled) return unsampled(parent.traceId, parent.spanId);
      return start(name, options, contextOf({ ...remote(parent), traceFlags: api.TraceFlags.SAMPLED }));
    },
    close: () =>
      atMost(
        clock,
        lastExportMs,
        provider.shutdown().catch(() => {}),
      ),
  };
}

const remote = ({ traceId, spanId }: Traceparent) => ({ traceId, spanId, isRemote: true });

/** A span that only has ids, for the log and the next process. */
function unsampled(traceId: string, spanId: string): Span {
  const span: Span = {
    traceparent: `00-${traceId}-${spanId}-00`,
    ids: { trace_id: traceId, span_id: spanId },
    isSampled: false,
    child: () => span,
    set() {},
    event() {},
    fail() {},
    end() {},
  };
  return span;
}

const defined = (attributes: Attributes) =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));

interface Traceparent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** A later version may have more fields after its flags. */
const traceparentForm = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const maxTraceparentLength = 256;

/** Parses W3C Trace Context, level 1 (https://www.w3.org/TR/trace-context/). Returns undefined if it is invalid. */
export function parseTraceparent(header: string | undefined): Traceparent | undefined {
  if (header === undefined || header.length > maxTraceparentLength) return undefined;
  const [, version, traceId, spanId, flags, rest] = traceparentForm.exec(header) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === "00" && rest !== undefined) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** Parses `name=value,other=value`, percent-encoded, the notation of OTLP headers and resource attributes. */
function pairsOf(list: string | undefined): Record<string, string> {
  const pairs = (list ?? "").split(",").flatMap((pair) => {
    const at = pair.indexOf("=");
    if (at < 1) return [];
    return [[pair.slice(0, at).trim(), decode(pair.slice(at + 1).trim())] as const];
  });
  return Object.fromEntries(pairs);
}

function decode(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
