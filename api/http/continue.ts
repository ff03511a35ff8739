import type { Request, Response } from "express";

const proceeded = new WeakSet<Request>();

/** Whoever reads a body says so first: a caller with `Expect: 100-continue` sends nothing before. Once a request. */
export function proceed(req: Request, res: Response): void {
  if (proceeded.has(req) || res.headersSent) return;
  proceeded.add(req);
  if (/^100-continue$/i.test(req.headers.expect?.trim() ?? "")) res.writeContinue();
}
