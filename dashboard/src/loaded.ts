import { unreachable } from "./api/client.ts";

/**
 * A part of the page that is loaded when it is needed. Without a connection it fails as a request does; where a new build has
 * removed the file, with the browser's own error, at which the router loads the page again.
 */
export const loaded =
  <Module>(load: () => Promise<Module>) =>
  (): Promise<Module> =>
    load().catch(async (error: unknown) => {
      await fetch(import.meta.env.BASE_URL, { method: "HEAD" }).catch(unreachable);
      throw error;
    });
