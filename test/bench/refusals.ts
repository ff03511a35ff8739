import { processOf, runBench, theService } from "./bench.ts";
import { runLoad } from "./load.ts";
import { cpuMs } from "./processes.ts";
import { noLimits, openKey } from "./service.ts";
import { requestBody } from "./workload.ts";

/** The processor time of a call refused for its balance: `node test/bench/refusals.ts [seconds]`. */
const seconds = Number(process.argv[2] ?? 20);

await runBench("bench-refusals", async (bench) => {
  const service = theService(bench);
  const { key } = await openKey(service.admin, { limits: noLimits });
  const headers = { ...service.target.headers, authorization: `Bearer ${key}` };
  const run = async (durationMs: number) => {
    const { failed, failures } = await runLoad({
      targets: [{ ...service.target, headers }],
      body: requestBody("local/chat", false),
      end: "}",
      pace: { kind: "closed", connections: 16 },
      durationMs,
      timeoutMs: 30_000,
    });
    if (failures["status 402"] !== failed) throw new Error(`not only 402: ${JSON.stringify(failures)}`);
    return failed;
  };
  await run(10_000);
  const processes = [processOf(service, "api"), ...service.servers];
  const before = processes.map(cpuMs);
  const calls = await run(seconds * 1_000);
  const each = processes.map((one, at) => `${one.name} ${((cpuMs(one) - (before[at] ?? 0)) / calls).toFixed(2)} ms`);
  const rate = (calls / seconds).toFixed(0);
  bench.say(`402 for the balance: ${rate} calls/s, processor time of a call: ${each.join(", ")}`);
});
