import { expect } from "vitest";
import { type Ended, runProgram, startProgram } from "./program.ts";
import { type Client, type Environment, testAdminToken } from "./service.ts";

const program = "infra/cli/admin.ts";
const nowhere = { DATA_DIR: "/nonexistent" };

/** `npm run admin -- ...` as a process, with only the given environment. */
export const run = (args: readonly string[], env: Environment): Promise<Ended> =>
  runProgram([program, ...args], { ...nowhere, ...env });

/** The command line of this service's operator. */
export function adminCli(service: Pick<Client, "baseUrl">) {
  const env = () => ({ ...nowhere, ADMIN_URL: service.baseUrl, ADMIN_TOKEN: testAdminToken });
  return {
    start: (...args: string[]) => startProgram([program, ...args], env()),
    admin: (...args: string[]) => run(args, env()),
    json: async (...args: string[]) => {
      const { code, out, err } = await run([...args, "--json"], env());
      expect({ code, err }).toEqual({ code: 0, err: "" });
      return JSON.parse(out) as { id: string; key: string };
    },
  };
}
