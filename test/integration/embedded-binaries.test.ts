import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { findBinaries, MissingServerError, type Progress } from "../../infra/embedded/index.ts";

const execute = promisify(execFile);

/** An empty machine: its own PATH and cache, with the programs that a test installs there. */
async function emptyMachine(given: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), "inference-machine-"));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  const [bin, cacheDir] = [join(root, "bin"), join(root, "cache")];
  await Promise.all([bin, cacheDir].map((folder) => mkdir(folder)));
  const put = async (file: string, script: string) => {
    await writeFile(file, `#!/bin/sh\n${script}\n`);
    await chmod(file, 0o755);
    return file;
  };
  return {
    env: { ...given, PATH: bin },
    cacheDir,
    onPath: (name: string, script: string) => put(join(bin, name), script),
    inCache: (name: string, script: string) => put(join(cacheDir, name), script),
  };
}

const allGiven = { REDIS_URL: "given", MONGODB_URI: "given", S3_ENDPOINT: "given" };
const only = (address: keyof typeof allGiven) => ({ ...allGiven, [address]: "" });

/** Answers every download with these bytes. */
async function startMirror(bytes: Buffer): Promise<string> {
  const server = createServer((_, response) => response.end(bytes)).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** The machine has no versitygw, and no release can be downloaded. */
const onlyGo = async () =>
  emptyMachine({ ...only("S3_ENDPOINT"), VERSITYGW_DOWNLOAD_MIRROR: await startMirror(Buffer.from("not an archive")) });

test("no program is searched when every address is set", async () => {
  const { env, cacheDir } = await emptyMachine(allGiven);
  expect(await findBinaries({ env, cacheDir })).toEqual({});
});

test("a program on PATH comes before one in the cache", async () => {
  const { env, cacheDir, onPath, inCache } = await emptyMachine(only("REDIS_URL"));
  await inCache("valkey-server-9.1.2", "echo 'Valkey server v=9.1.2'");
  const redis = await onPath("redis-server", "echo 'Redis server v=7.0.15 sha=00000000:0'");
  expect(await findBinaries({ env, cacheDir })).toEqual({ redis });
});

test("a program on PATH that is too old, or does not run, is not used", async () => {
  const { env, cacheDir, onPath, inCache } = await emptyMachine({ S3_ENDPOINT: "given" });
  await onPath("redis-server", "echo 'Redis server v=6.2.1 sha=00000000:0'");
  await onPath("mongod", "echo 'libcrypto.so.1.1: cannot open shared object file' >&2; exit 127");
  const redis = await inCache("valkey-server-9.1.2", "echo 'Valkey server v=9.1.2'");
  const mongo = await inCache("mongod-6.0.5", "echo 'db version v6.0.5'");
  expect(await findBinaries({ env, cacheDir })).toEqual({ redis, mongo });
});

const fakeGo = `echo "go: downloading github.com/versity/versitygw v1.8.0" >&2
printf '#!/bin/sh\\n' > "$GOBIN/versitygw"`;

test("two processes may fetch at once; the cache gets complete programs and nothing else", async () => {
  const { env, cacheDir, onPath } = await onlyGo();
  await onPath("go", fakeGo);
  const progress: Progress[] = [];
  const fetches = [1, 2].map(() => findBinaries({ env, cacheDir, onProgress: (each) => progress.push(each) }));
  const s3 = join(cacheDir, "versitygw-1.8.0");
  expect(await Promise.all(fetches)).toEqual([{ s3 }, { s3 }]);
  expect(await readdir(cacheDir)).toEqual(["versitygw-1.8.0"]);
  const ended = progress.map(({ state }) => state).filter((state) => state !== "running");
  expect(ended.toSorted()).toEqual(["done", "done", "failed", "failed"]);
});

test("a fetched program that does not run is refused and not cached", async () => {
  const { env, cacheDir, onPath } = await onlyGo();
  await onPath("go", `printf '#!/bin/sh\\necho "exec format error" >&2; exit 1\\n' > "$GOBIN/versitygw"`);
  await expect(findBinaries({ env, cacheDir })).rejects.toThrow(/go install\): does not run: exec format error/);
  expect(await readdir(cacheDir)).toEqual([]);
});

test("a missing server is one message with the attempts and a remedy", async () => {
  const { env, cacheDir } = await onlyGo();
  const failure = await findBinaries({ env, cacheDir }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(MissingServerError);
  const lines = (failure as Error).message.split("\n");
  expect(lines[2]).toMatch(
    /versitygw 1\.8\.0 \(release archive\): error: the SHA-256 of http:.*\.tar\.gz is [\da-f]{64}, not [\da-f]{64}$/,
  );
  expect(lines.toSpliced(2, 1).join("\n")).toBe(`S3 is not installed and cannot be fetched. Tried:
  - versitygw: not on PATH
  - versitygw 1.8.0 (go install): needs Go, and there is none
Install versitygw (github.com/versity/versitygw), or Go, from which it is compiled, so that it is on PATH, or set S3_ENDPOINT to the address of a running server.`);
});

test("a fetch is canceled by the signal of its start", async () => {
  const { env, cacheDir, onPath } = await onlyGo();
  await onPath("go", "read -r nothing < /dev/zero");
  const cancel = new AbortController();
  const found = findBinaries({ env, cacheDir, signal: cancel.signal, onProgress: () => cancel.abort() });
  await expect(found).rejects.toThrow(/aborted/);
  expect(await readdir(cacheDir)).toEqual([]);
});

test("a release archive with the expected SHA-256 is unpacked", async () => {
  const folder = await mkdtemp(join(tmpdir(), "inference-release-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, "versitygw_v1"));
  await writeFile(join(folder, "versitygw_v1", "versitygw"), "the program");
  const archive = join(folder, "given.tar.gz");
  await execute("tar", ["-czf", archive, "-C", folder, "versitygw_v1"]);
  const bytes = await readFile(archive);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const target = await mkdtemp(join(folder, "target-"));
  await execute(process.execPath, ["infra/embedded/download-versitygw.ts", target, await startMirror(bytes), sha256]);
  expect(await readFile(join(target, "versitygw_v1", "versitygw"), "utf8")).toBe("the program");
});
