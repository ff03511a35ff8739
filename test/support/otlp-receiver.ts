import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import protobuf from "protobufjs";
import { afterTest, type OnEnd } from "./of-file.ts";
import { eventually } from "./service.ts";

/**
 * The messages of OTLP 1.x for traces, by the field numbers of its specification
 * (https://github.com/open-telemetry/opentelemetry-proto), so that none of the exporter's own code reads its output.
 */
const definitions = `
syntax = "proto3";
message Request { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message ScopeSpans { Scope scope = 1; repeated Span spans = 2; string schema_url = 3; }
message Scope { string name = 1; string version = 2; }
message Span {
  bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5;
  int32 kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
  uint32 dropped_attributes_count = 10; repeated Event events = 11; uint32 dropped_events_count = 12;
  repeated Link links = 13; uint32 dropped_links_count = 14; Status status = 15; fixed32 flags = 16;
}
message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
message Link { bytes trace_id = 1; bytes span_id = 2; }
message Status { string message = 2; int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue {
  oneof value {
    string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; ArrayValue array_value = 5;
  }
}
message ArrayValue { repeated AnyValue values = 1; }
`;
const Request = protobuf.parse(definitions).root.lookupType("Request");

interface AnyValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: number;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values?: readonly AnyValue[] };
}
type KeyValues = readonly { readonly key: string; readonly value: AnyValue }[];
interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: KeyValues;
  readonly events?: readonly { readonly name: string; readonly timeUnixNano: string }[];
  readonly status?: { readonly code?: number };
}

export interface ReceivedSpan {
  readonly service: string;
  readonly trace: string;
  readonly id: string;
  readonly parent: string | undefined;
  readonly name: string;
  readonly kind: "internal" | "server" | "client" | "producer" | "consumer";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly string[];
  readonly isError: boolean;
}

const kinds = [undefined, "internal", "server", "client", "producer", "consumer"] as const;
const hex = (base64: string) => Buffer.from(base64, "base64").toString("hex");
const valueOf = (value: AnyValue): unknown =>
  value.arrayValue
    ? (value.arrayValue.values ?? []).map(valueOf)
    : (value.stringValue ?? value.boolValue ?? value.intValue ?? value.doubleValue);
const attributesOf = (attributes: KeyValues = []) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, valueOf(value)]));

/** Throws for spans that a receiver may refuse. */
function spansOf(bytes: Buffer): ReceivedSpan[] {
  const message = Request.decode(bytes);
  const { resourceSpans = [] } = Request.toObject(message, { longs: Number, bytes: String }) as {
    resourceSpans?: { resource: { attributes: KeyValues }; scopeSpans: { spans: WireSpan[] }[] }[];
  };
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = attributesOf(resource.attributes)["service.name"] as string;
    return scopeSpans.flatMap(({ spans }) => spans.map((span) => received(service, span)));
  });
}

function received(service: string, span: WireSpan): ReceivedSpan {
  const { name, parentSpanId = "", attributes, events = [], status } = span;
  const [trace, id] = [hex(span.traceId), hex(span.spanId)];
  const [startMs, endMs] = [Number(span.startTimeUnixNano) / 1e6, Number(span.endTimeUnixNano) / 1e6];
  const kind = kinds[span.kind];
  const isValid = trace.length === 32 && id.length === 16 && [0, 16].includes(hex(parentSpanId).length);
  if (!isValid || !kind || !name || !service || endMs < startMs) throw new Error(`not a valid span: ${name}`);
  return {
    service,
    trace,
    id,
    parent: hex(parentSpanId) || undefined,
    name,
    kind,
    startMs,
    endMs,
    attributes: attributesOf(attributes),
    events: events.map((event) => event.name),
    isError: status?.code === 2,
  };
}

/**
 * A receiver of traces through OTLP over HTTP, which refuses requests against the specification. It ends with the test,
 * or through `onEnd`.
 */
export async function startOtlpReceiver(onEnd: OnEnd = afterTest) {
  const spans: ReceivedSpan[] = [];
  const refused: unknown[] = [];
  const headers: IncomingHttpHeaders[] = [];
  let opened: Promise<unknown> | undefined;

  async function receive(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await buffer(req);
    headers.push(req.headers);
    await opened;
    try {
      const { method, url, headers } = req;
      if (`${method} ${url}` !== "POST /v1/traces") throw new Error(`${method} ${url}`);
      if (headers["content-type"] !== "application/x-protobuf") throw new Error(`${headers["content-type"]}`);
      spans.push(...spansOf(body));
      res.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    } catch (error) {
      refused.push(error);
      res.writeHead(400).end();
    }
  }

  const server = createServer((req, res) => void receive(req, res).catch(() => res.destroy()));
  // An idle connection must not be closed just as the next spans are sent.
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  const ofTrace = (trace: string) => spans.filter((span) => span.trace === trace);
  return {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      OTEL_BSP_SCHEDULE_DELAY: "20",
    },
    spans,
    /** The reasons of refused requests, expected to be empty. */
    refused,
    headers,
    /** Delays all responses until it resolves. */
    holdUntil(open: Promise<unknown>): void {
      opened = open;
    },
    /** The spans of a trace, once they include these names, as often as they are given. */
    trace: (trace: string, ...names: string[]): Promise<readonly ReceivedSpan[]> =>
      eventually(() => {
        const found = ofTrace(trace);
        const times = (name: string) => found.filter((span) => span.name === name).length;
        return names.every((name) => times(name) >= names.filter((each) => each === name).length) && found;
      }),
  };
}

/** Their names as a tree, children by start. */
export function treeOf(spans: readonly ReceivedSpan[], parent?: string): unknown[] {
  const ids = new Set(spans.map(({ id }) => id));
  const isChild = (span: ReceivedSpan) =>
    parent === undefined ? span.parent === undefined || !ids.has(span.parent) : span.parent === parent;
  return spans
    .filter(isChild)
    .toSorted((a, b) => a.startMs - b.startMs || a.endMs - b.endMs)
    .map((span) => {
      const children = treeOf(spans, span.id);
      return children.length > 0 ? [span.name, children] : span.name;
    });
}

/** A caller's header, and its trace id. */
export function caller(number: number, flags = "01") {
  const trace = number.toString(16).padStart(32, "a");
  return { trace, span: "00000000000000f1", traceparent: `00-${trace}-00000000000000f1-${flags}` };
}
