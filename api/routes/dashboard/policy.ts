import type { RequestHandler } from "express";
import helmet from "helmet";
import { crossSiteRequest } from "#errors";

/** Methods that change nothing. */
const isRead = (method: string) => method === "GET" || method === "HEAD";

/**
 * Refuses writes that another site's page makes the browser send, beside the cookie's `SameSite`. A browser that sends no
 * `Sec-Fetch-Site` sends `Origin` with every write.
 */
export const sameOriginWrites =
  (publicUrl: () => string): RequestHandler =>
  (req, _res, next) => {
    if (isRead(req.method)) return next();
    const site = req.get("sec-fetch-site");
    if (site === undefined ? !isOwn(req.get("origin"), req.get("host"), publicUrl()) : site !== "same-origin")
      throw crossSiteRequest();
    next();
  };

function isOwn(origin: string | undefined, host: string | undefined, publicUrl: string): boolean {
  if (origin === undefined || !URL.canParse(origin)) return false;
  const given = new URL(origin);
  return given.origin === new URL(publicUrl).origin || given.host === host;
}

/**
 * Headers of the page. Beside its own host it reaches only the storage that uploads go to directly, and the public address in
 * the links of generated files. `blob:` shows what the page made itself: previews of chosen files, images and audio of answers.
 */
export function pageHeaders({ publicUrl, storage }: { publicUrl: () => string; storage: string }): RequestHandler {
  const storageOrigin = new URL(storage).origin;
  const linked = ["'self'", () => new URL(publicUrl()).origin, storageOrigin];
  const strict = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        fontSrc: ["'self'"],
        connectSrc: linked,
        imgSrc: [...linked, "blob:"],
        mediaSrc: [...linked, "blob:"],
        baseUri: ["'none'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
      },
    },
    referrerPolicy: { policy: "no-referrer" },
    crossOriginOpenerPolicy: { policy: "same-origin" },
    crossOriginResourcePolicy: { policy: "same-origin" },
    xFrameOptions: { action: "deny" },
  });
  return (req, res, next) => {
    res.setHeader("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()");
    strict(req, res, next);
  };
}
