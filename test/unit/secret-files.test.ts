import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { loadCatalog, withUpstreamKeys } from "#catalog";
import { environment, loadConfig, secretVariables } from "#platform/config";
import { ConfigError } from "#platform/config-error";
import { withSecretFiles } from "#platform/process/secret-files";

const folder = mkdtempSync(join(tmpdir(), "secret-files-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(content: string): string {
  const file = join(folder, `${secretCount++}`);
  writeFileSync(file, content);
  return file;
}
let secretCount = 0;

const required = {
  REDIS_URL: "redis://redis",
  MONGODB_URI: "mongodb://mongo/inference",
  S3_ENDPOINT: "http://s3",
  S3_ACCESS_KEY_ID: "access",
  S3_SECRET_ACCESS_KEY: "secret",
};

describe("a secret of the service", () => {
  test.each(secretVariables)("%s comes from the file that its variable with _FILE names", (name) => {
    const formed = {
      CACHE_REDIS_URL: "redis://:key@cache",
      SOLANA_RPC_URL: "https://rpc.test/key",
      WEBHOOK_PROXY_URL: "http://user:key@proxy.test:4750",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20key",
      ADMIN_TOKENS: "ann:a-secret-of-some-length-for-everyone",
      SECRETS_PRIVATE_KEYS: Buffer.alloc(32, 7).toString("base64"),
    };
    const value = { ...required, ...formed }[name] ?? "a-secret-of-some-length-for-everyone";
    const env = withSecretFiles({ ...required, [name]: "", [`${name}_FILE`]: fileOf(value) }, secretVariables);
    expect(loadConfig(env)).toMatchObject({ [name]: value });
    expect(env[`${name}_FILE`]).toBeUndefined();
  });

  test("is every variable whose name says that it is one", () => {
    const named =
      /_(?<!PUBLIC_)(KEYS?|SECRET|PASSWORD|URI|KEY_ID)$|_SECRET_|_HEADERS$|(ADMIN|FACILITATOR)_TOKENS?$|^(CACHE_)?REDIS_URL$|_(RPC|PROXY)_URL$/;
    expect(Object.keys(environment.shape).filter((name) => named.test(name))).toEqual(secretVariables);
  });

  test.each([
    ["one\n", "one"],
    ["one\r\n", "one"],
    ["one\n\n", "one\n"],
    [" one ", " one "],
    ["[1,\n2]\n", "[1,\n2]"],
  ])("is the whole of its file %j but for one newline at the end", (content, value) => {
    expect(withSecretFiles({ ADMIN_TOKEN_FILE: fileOf(content) }, ["ADMIN_TOKEN"])).toEqual({ ADMIN_TOKEN: value });
  });

  test("that cannot be read, is empty, or is given twice stops the start, all at once and without its content", () => {
    const [empty, twice] = [fileOf("\n"), fileOf("hunter2-in-a-file")];
    const env = {
      ADMIN_TOKEN_FILE: join(folder, "missing"),
      REDIS_URL_FILE: folder,
      MONGODB_URI_FILE: empty,
      JUPITER_API_KEY: "hunter2",
      JUPITER_API_KEY_FILE: twice,
    };
    const read = () =>
      withSecretFiles(
        env,
        Object.keys(env)
          .filter((name) => !name.endsWith("_FILE"))
          .concat("ADMIN_TOKEN", "REDIS_URL", "MONGODB_URI"),
      );
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(
      [
        "The configuration is not valid.",
        "  JUPITER_API_KEY and JUPITER_API_KEY_FILE are both set: set only one of them",
        `  ADMIN_TOKEN_FILE: ${folder}/missing cannot be read: ENOENT`,
        `  REDIS_URL_FILE: ${folder} cannot be read: EISDIR`,
        `  MONGODB_URI_FILE: ${empty} is empty`,
      ].join("\n"),
    );
    expect(read).not.toThrow(/hunter2/);
  });
});

test("paths that are no secrets stay what they are", () => {
  const env = { CATALOG_FILE: "/nowhere", SSL_CERT_FILE: "/nowhere", X402_PAY_TO_FILE: "/nowhere" };
  expect(withSecretFiles(env, secretVariables)).toEqual(env);
});

test("the key of an upstream comes from a file, but not its address", () => {
  const env = { FAL_KEY_FILE: fileOf("fal-key\n"), OPENAI_API_KEY: "key", OPENAI_BASE_URL_FILE: "/nowhere" };
  expect(withUpstreamKeys(env, loadCatalog(undefined))).toEqual({
    FAL_KEY: "fal-key",
    OPENAI_API_KEY: "key",
    OPENAI_BASE_URL_FILE: "/nowhere",
  });
});

test("an empty variable is not set, whichever it is", () => {
  const empty = Object.fromEntries(
    Object.keys(environment.shape).flatMap((name) => [
      [name, ""],
      [`${name}_FILE`, ""],
    ]),
  );
  expect(loadConfig(withSecretFiles({ ...empty, ...required }, secretVariables))).toEqual(loadConfig(required));
});
