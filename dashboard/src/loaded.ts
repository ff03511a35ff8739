import { unreachable } from "./api/client.ts";

/**
 * A part of the page, loaded on demand. Without a connection it fails as a request does. If a new build has removed the
 * file, it fails with the browser's own error, at which the router reloads the page.
 */
export const loaded =
  <Module>(load: () => Promise<Module>) =>
  (): Promise<Module> =>
    load().catch(async (error: unknown) => {
      await fetch(import.meta.env.BASE_URL, { method: "HEAD" }).catch(unreachable);
      throw error;
    });
