import { storesOfRun } from "./servers.ts";

// Not in a test or a hook, whose time is limited: a first run may have to compile a server.
await storesOfRun();
