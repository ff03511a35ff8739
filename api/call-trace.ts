import type { Request, Response } from "express";
import type { Tracing } from "#platform/observability/tracing";
import { localsOf } from "./http/headers.ts";

/**
 * The spans of one paid call in this process: one for the call, from the first byte of the request to the last of the
 * answer, and one for its admission.
 */
export type CallTrace = ReturnType<typeof beginCallTrace>;

/**
 * Called once the caller has a slot of its key or has paid, so that requests which anyone can send create no spans. The span
 * still starts when the request arrived.
 */
export function beginCallTrace(
  tracing: Tracing,
  { req, res, endpoint, account }: { req: Request; res: Response; endpoint: string; account: string },
) {
  const { requestId, arrivedAt } = localsOf(res);
  const span = tracing.begin(`POST ${endpoint}`, {
    kind: "server",
    at: arrivedAt,
    traceparent: req.get("traceparent"),
    attributes: {
      "http.request.method": "POST",
      "http.route": endpoint,
      "inference.request_id": requestId,
      "inference.account": account,
    },
  });
  const admission = span.child("admission", { at: arrivedAt });
  let isAdmitted = false;
  let hasEnded = false;

  return {
    span,
    /** Records that a step of the admission is done. */
    passed: (step: "slot" | "body" | "idempotency") => admission.event(step),
    admitted({ model, stream }: { readonly model: string; readonly stream: boolean }) {
      isAdmitted = true;
      span.set({ "inference.model": model, "inference.stream": stream });
      admission.end();
    },
    /** Only the first call has an effect. `status` is 499 if the caller disconnected. */
    end(status: number, code?: string, firstEventAt?: number) {
      if (hasEnded) return;
      hasEnded = true;
      if (!isAdmitted) {
        if (code !== undefined) admission.fail(code);
        admission.end();
      }
      if (firstEventAt !== undefined) span.event("first event", firstEventAt);
      const sent = res.headersSent ? res.statusCode : status;
      if (status === 499) span.set({ "inference.disconnected": true });
      else span.set({ "http.response.status_code": sent });
      // OpenTelemetry does not count a 4xx as an error of a server span: the fault is the caller's.
      if (status >= 500) span.fail(code ?? String(status));
      else if (code !== undefined) span.set({ "error.type": code });
      span.end();
    },
  };
}
