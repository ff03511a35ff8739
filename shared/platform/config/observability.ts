import { z } from "zod";
import { address, between, secret, text } from "./fields.ts";

/** Lists of names and values in the notation of OpenTelemetry's specification. */
const pairs = z
  .string()
  .regex(/^\s*[\w.!#$&'*+^`|~-]+\s*=([^,%]|%[0-9A-Fa-f]{2})*(,\s*[\w.!#$&'*+^`|~-]+\s*=([^,%]|%[0-9A-Fa-f]{2})*)*$/, {
    error: "must be name=value,name=value, with percent-encoded values",
  });
/** The standard values of OTEL_TRACES_SAMPLER. */
const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/** Logs and traces. */
export const observability = {
  LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Lowest level of log messages that are written"),
  OTEL_EXPORTER_OTLP_ENDPOINT: address
    .optional()
    .describe("Address of the trace collector (OTLP over HTTP), without `/v1/traces`. If unset, nothing is traced"),
  OTEL_EXPORTER_OTLP_HEADERS: pairs
    .optional()
    .describe("Headers for that collector, `name=value,name=value`, percent-encoded")
    .meta(secret),
  OTEL_SERVICE_NAME: text
    .optional()
    .describe("Name of the process in traces. Default: `inference-api` or `inference-worker`"),
  OTEL_RESOURCE_ATTRIBUTES: pairs
    .optional()
    .describe("Further resource attributes of the process in traces, such as `deployment.environment.name=production`"),
  OTEL_TRACES_SAMPLER: z
    .enum(samplers)
    .default("parentbased_always_on")
    .describe("Which calls are traced: one of OpenTelemetry's samplers. Unlike there, callers cannot force a trace"),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe("Fraction of calls that `traceidratio` and `parentbased_traceidratio` trace"),
  OTEL_BSP_SCHEDULE_DELAY: between("Milliseconds that spans wait to be sent together", 10, 60_000, 2_000),
  OTEL_CAPTURE_CONTENT: z
    .stringbool()
    .default(false)
    .describe("`on`: traces of text calls contain the prompt and the response, truncated to 16,000 characters each"),
};
