import { describe, expect, test } from "vitest";
import { createReceiverAddresses } from "../../shared/platform/receiver-addresses.ts";

const names: Readonly<Record<string, string[]>> = {
  "hooks.example.com": ["93.184.215.14", "2606:2800:21f::1"],
  "inside.example.com": ["10.0.0.5"],
  "both.example.com": ["93.184.215.14", "169.254.169.254"],
  "mapped.example.com": ["::ffff:10.0.0.5"],
  "receiver.default.svc.cluster.local": ["10.0.0.7"],
  receiver: ["10.0.0.7"],
  "api.inference.example.com": ["93.184.215.14"],
  "half.example.com": ["93.184.215.14", "10.0.0.5"],
};
const asked: string[] = [];

/** Resolves to nothing, or to the reason for a refusal. */
function judge(url: string, networks?: string): Promise<string | undefined> {
  const config = {
    WEBHOOK_ALLOWED_NETWORKS: networks,
    PUBLIC_URL: "https://api.inference.example.com",
    S3_ENDPOINT: "http://s3.inference.example.com:9000",
  };
  const receivers = createReceiverAddresses(config, (host) => {
    asked.push(host);
    return Promise.resolve(names[host] ?? []);
  });
  return receivers.locate(url).then(
    () => undefined,
    (error: Error) => `${error.name}: ${error.message}`,
  );
}

const notPublic = "does not have a public host";
const inside = "leads to an address that is not public";

describe("without allowed networks", () => {
  test.each([
    "https://hooks.example.com/a?b=c",
    "https://HOOKS.example.com.:443/",
    "https://hooks.example.com:8443/",
    "https://93.184.215.14/",
    "https://[2606:2800:21f::1]:1024/",
  ])("%s is allowed", async (url) => {
    expect(await judge(url.replace("com.", "com"))).toBeUndefined();
  });

  test.each([
    ["http://hooks.example.com/", "is not an https URL"],
    ["ftp://hooks.example.com/", "is not an https URL"],
    ["file:///etc/passwd", "is not an https URL"],
    ["hooks.example.com", "is not an https URL"],
    ["https://", "is not an https URL"],
    ["https://user@hooks.example.com/", "has a user name or password"],
    ["https://:secret@hooks.example.com/", "has a user name or password"],
    ["https://hooks.example.com@10.0.0.5/", "has a user name or password"],
    ["https://hooks.example.com/#", "has a fragment"],
    [`https://hooks.example.com/${"a".repeat(2_048)}`, "has more than 2048 characters"],
    ["https://hooks.example.com:80/", "has the port 80; allowed are 443 and most ports from 1024"],
    ["https://hooks.example.com:22/", "has the port 22; allowed are 443 and most ports from 1024"],
    ["https://hooks.example.com:6379/", "has the port 6379; allowed are 443 and most ports from 1024"],
    ["https://hooks.example.com:27017/", "has the port 27017; allowed are 443 and most ports from 1024"],
    ["https://localhost/", notPublic],
    ["https://a.localhost./", notPublic],
    ["https://receiver/", notPublic],
    ["https://receiver.default.svc.cluster.local/", notPublic],
    ["https://metadata.google.internal/", notPublic],
    ["https://router.home.arpa/", notPublic],
    ["https://127.0.0.1/", notPublic],
    ["https://0x7f000001/", notPublic],
    ["https://2130706433/", notPublic],
    ["https://0177.0.0.1/", notPublic],
    ["https://127.1/", notPublic],
    ["https://%31%30.0.0.5/", notPublic],
    ["https://169.254.169.254/latest/meta-data", notPublic],
    ["https://[::1]/", notPublic],
    ["https://[::ffff:10.0.0.1]/", notPublic],
    ["https://[64:ff9b::a00:1]/", notPublic],
    ["https://[fd00::1]/", notPublic],
    ["https://api.inference.example.com/v1/chat/completions", "leads to this service itself"],
    ["https://API.inference.example.com.:8443/", "leads to this service itself"],
    ["https://s3.inference.example.com/", "leads to this service itself"],
  ])("%s is refused before its name is resolved", async (url, reason) => {
    asked.length = 0;
    expect(await judge(url)).toBe(`AddressRefused: ${reason}`);
    expect(asked).toEqual([]);
  });

  test.each([
    ["https://inside.example.com/", inside],
    ["https://both.example.com/", inside],
    ["https://mapped.example.com/", inside],
    ["https://unknown.example.com/", "has a host that cannot be resolved"],
  ])("%s is refused by the addresses of its name", async (url, reason) => {
    expect(await judge(url)).toBe(`AddressRefused: ${reason}`);
  });
});

describe("with 10.0.0.0/8 and fd00::1 allowed", () => {
  const networks = "10.0.0.0/8, fd00::1";
  test.each([
    ["http://10.0.0.1:80/", undefined],
    ["http://[fd00::1]:6379/", undefined],
    ["http://[::ffff:10.0.0.1]/", undefined],
    ["http://receiver:3000/", undefined],
    ["http://receiver.default.svc.cluster.local/", undefined],
    ["https://inside.example.com/", undefined],
    ["https://hooks.example.com/", undefined],
    ["https://half.example.com/", undefined],
    ["http://half.example.com/", "is not an https URL"],
    ["http://hooks.example.com/", "is not an https URL"],
    ["http://11.0.0.1/", "is not an https URL"],
    ["https://192.168.0.1/", notPublic],
    ["https://[fd00::2]/", notPublic],
    ["http://user@10.0.0.1/", "has a user name or password"],
    ["https://both.example.com/", inside],
  ])("%s: %s", async (url, reason) => {
    expect(await judge(url, networks)).toBe(reason && `AddressRefused: ${reason}`);
  });
});
