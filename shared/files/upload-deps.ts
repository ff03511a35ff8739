import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Charges } from "./charges.ts";
import type { Expiry } from "./expiry.ts";
import type { Links } from "./links.ts";
import type { Outcome } from "./outcome.ts";
import type { Records } from "./records.ts";
import type { Storage } from "./storage.ts";
import type { createShow } from "./upload-view.ts";

export interface UploadDeps {
  readonly records: Records;
  readonly charges: Charges;
  readonly storage: Storage;
  readonly outcome: Outcome;
  readonly lives: Expiry;
  readonly links: Links;
  /** Storage has an address on the internet. */
  readonly providersReachLinks: boolean;
  readonly show: ReturnType<typeof createShow>;
  readonly clock: Clock;
  readonly log: Logger;
}
