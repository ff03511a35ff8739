import type { Clock } from "#platform/clock";
import type { Logger } from "#platform/logger";
import type { Charges } from "./charges.ts";
import type { Links } from "./links.ts";
import type { Lives } from "./lives.ts";
import type { Outcome } from "./outcome.ts";
import type { Records } from "./records.ts";
import type { createShow } from "./show.ts";
import type { Storage } from "./storage.ts";

export interface UploadDeps {
  readonly records: Records;
  readonly charges: Charges;
  readonly storage: Storage;
  readonly outcome: Outcome;
  readonly lives: Lives;
  readonly links: Links;
  /** Storage has an address on the internet. */
  readonly makersReachLinks: boolean;
  readonly show: ReturnType<typeof createShow>;
  readonly clock: Clock;
  readonly log: Logger;
}
