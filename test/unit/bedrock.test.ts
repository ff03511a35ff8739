import { AwsV4Signer } from "aws4fetch";
import { describe, expect, test } from "vitest";
import { profilePrefix } from "../../workers/providers/bedrock/addresses.ts";
import { createSigner } from "../../workers/providers/bedrock/credentials.ts";
import { createFrameReader } from "../../workers/providers/bedrock/event-stream.ts";
import { createManualClock } from "../support/manual-clock.ts";
import { signatureOf } from "../support/mock-aws-signature.ts";
import { encodeFrame, frameOf } from "../support/mock-event-stream.ts";

const suite = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" };
const clock = createManualClock(Date.UTC(2015, 7, 30, 12, 36));
const scope = "20150830/us-east-1/service/aws4_request";
const formType = { "content-type": "application/x-www-form-urlencoded; charset=utf8" };

interface More {
  readonly body?: string;
  readonly sessionToken?: string;
}
type Vector = readonly [
  name: string,
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  signature: string,
  more: More,
];

/**
 * AWS's test suite for signatures (https://github.com/awslabs/aws-c-auth, tests/aws-signing-test-suite/v4, each in its
 * header-signed-request.txt).
 */
const vectors: readonly Vector[] = [
  ["get-vanilla", "GET", "/", {}, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31", {}],
  ["post-vanilla", "POST", "/", {}, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b", {}],
  [
    "get-vanilla-query-order-key-case",
    "GET",
    "/?Param2=value2&Param1=value1",
    {},
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    {},
  ],
  [
    "get-vanilla-query-order-encoded",
    "GET",
    "/?Param-3=Value3&Param=Value2&%E1%88%B4=Value1",
    {},
    "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
    {},
  ],
  [
    "get-unreserved",
    "GET",
    "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
    {},
    "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
    {},
  ],
  [
    "get-header-value-trim",
    "GET",
    "/",
    { "my-header1": " value1", "my-header2": ' "a   b   c"' },
    "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    {},
  ],
  [
    "post-x-www-form-urlencoded-parameters",
    "POST",
    "/",
    formType,
    "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe",
    { body: "Param1=value1" },
  ],
  [
    "get-vanilla-with-session-token",
    "GET",
    "/",
    {},
    "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
    { sessionToken: "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267" },
  ],
];

test.each(vectors)(
  "a request is signed as in AWS's own suite: %s",
  async (_, method, path, headers, signature, more) => {
    const { body, sessionToken } = more;
    const credentials = { ...suite, ...(sessionToken !== undefined && { sessionToken }) };
    const sign = createSigner(credentials, { region: "us-east-1", service: "service", clock });
    const url = new URL(`https://example.amazonaws.com${path}`);
    const signed = await sign({ method, url, headers: headers, body });
    expect(signed["authorization"]).toMatch(
      new RegExp(`^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/${scope}, .*${signature}$`),
    );
    // The mock servers verify with code of their own, which has to agree with the suite.
    const names = Object.keys({
      ...headers,
      host: "",
      "x-amz-date": "",
      ...(sessionToken && { "x-amz-security-token": "" }),
    });
    const request = { method, path, headers: signed, bytes: Buffer.from(body ?? "") };
    expect(signatureOf(request, suite.secretAccessKey, scope, names.toSorted().join(";"))).toBe(signature);
  },
);

test.each([
  ["us.anthropic.claude-haiku-4-5-20251001-v1:0"],
  ["arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2"],
])("a path that is encoded once is signed with a second encoding, as another signer does: %s", async (model) => {
  const url = `https://bedrock-runtime.us-east-1.amazonaws.com/model/${encodeURIComponent(model)}/invoke`;
  const body = '{"a":"ä"}';
  const headers = { "content-type": "application/json" };
  const sign = createSigner(suite, { region: "us-east-1", service: "bedrock", clock });
  const signed = await sign({ method: "POST", url: new URL(url), headers, body });
  const other = await new AwsV4Signer({
    ...suite,
    url,
    headers,
    body,
    method: "POST",
    region: "us-east-1",
    service: "bedrock",
    datetime: "20150830T123600Z",
    allHeaders: true,
  }).sign();
  expect(signed["authorization"]).toBe(other.headers.get("authorization"));
});

test.each([
  ["us-east-1", "us"],
  ["ca-central-1", "us"],
  ["us-gov-west-1", "us-gov"],
  ["eu-central-1", "eu"],
  ["ap-south-1", "apac"],
  ["ap-northeast-1", "jp"],
  ["ap-northeast-2", "apac"],
  ["ap-southeast-2", "au"],
  ["sa-east-1", undefined],
])("the profiles of %s begin with %s", (region, prefix) => expect(profilePrefix(region)).toBe(prefix));

/**
 * Frames of https://github.com/awslabs/aws-c-event-stream (tests/message_deserializer_test.c) and
 * https://github.com/boto/botocore (tests/unit/test_eventstream.py).
 */
const empty = "0000001000000000" + "05c248eb" + "7d98c8ff";
const withPayload = `0000001d00000000fd528c5a${hex("{'foo':'bar'}")}c3653936`;
const withHeader = `0000003d0000002007fd8396${hex("\x0ccontent-type\x07\x00\x10application/json{'foo':'bar'}")}8d9c08b1`;
const withInteger = `0000001d0000000d83e3f0e7${hex("\x07integer\x04")}ffffffff8b8e12eb`;
const withError = `0000005200000042bf23637e${hex(
  "\x0d:message-type\x07\x00\x05error\x0b:error-code\x07\x00\x04code\x0e:error-message\x07\x00\x07message",
)}6b6cea3d`;
const allTypes =
  `000000620000005203b5cb9c${hex("\x010\x00\x011\x01\x012\x02\x02\x013\x03\x00\x03\x014\x04\x00\x00\x00\x04")}` +
  hex("\x015\x05\x00\x00\x00\x00\x00\x00\x00\x05\x016\x06\x00\x05bytes\x017\x07\x00\x04utf8") +
  `${hex("\x018\x08\x00\x00\x00\x00\x00\x00\x00\x08\x019\x090123456789abcdef")}63353671`;

function hex(text: string): string {
  return Buffer.from(text, "latin1").toString("hex");
}

const read = (frames: readonly Buffer[]) => {
  const reader = createFrameReader();
  const all = frames.flatMap((bytes) => [...reader.push(bytes)]);
  return { all, isInFrame: reader.isInFrame() };
};
const shown = ({ headers, body }: ReturnType<typeof read>["all"][number]) => [
  Object.fromEntries(Object.entries(headers).map(([name, { value }]) => [name, value])),
  Buffer.from(body).toString(),
];

describe("frames of event streams", () => {
  const frames = [
    [empty, [{}, ""]],
    [withPayload, [{}, "{'foo':'bar'}"]],
    [withHeader, [{ "content-type": "application/json" }, "{'foo':'bar'}"]],
    [withInteger, [{ integer: -1 }, ""]],
    [withError, [{ ":message-type": "error", ":error-code": "code", ":error-message": "message" }, ""]],
  ] as const;
  const together = Buffer.from(frames.map(([frame]) => frame).join(""), "hex");

  test("those of AWS's own tests are read, alone and together, whole and byte for byte", () => {
    const expected = frames.map(([, content]) => content);
    for (const [frame, content] of frames) expect(read([Buffer.from(frame, "hex")]).all.map(shown)).toEqual([content]);
    expect(read([together]).all.map(shown)).toEqual(expected);
    const bytes = [...together].map((byte) => Buffer.from([byte]));
    expect(read(bytes)).toMatchObject({ isInFrame: false });
    expect(read(bytes).all.map(shown)).toEqual(expected);
    const [message] = read([Buffer.from(allTypes, "hex")]).all;
    expect(Object.keys(message?.headers ?? {})).toHaveLength(10);
    expect(message?.headers["7"]).toEqual({ type: "string", value: "utf8" });
  });

  test("the mock's encoder writes what AWS's tests have", () => {
    expect(encodeFrame({}, "{'foo':'bar'}").toString("hex")).toBe(withPayload);
    expect(encodeFrame({ "content-type": "application/json" }, "{'foo':'bar'}").toString("hex")).toBe(withHeader);
  });

  const header = Buffer.from("\x04name\x07\x00\x05value", "latin1");
  const body = Buffer.from("{}");
  const size = 16 + header.length + body.length;
  test.each([
    ["a wrong length", Buffer.from(withPayload.replace(/^00/, "01"), "hex")],
    ["a changed payload", Buffer.from(withPayload.replace("7dc3", "8dc3"), "hex")],
    ["a changed header", Buffer.from(withHeader.replace(hex("content-"), hex("content+")), "hex")],
    ["a changed length of the headers", Buffer.from(withHeader.replace("00000020", "ff000102"), "hex")],
    ["the greatest length", Buffer.from("ffffffff00000000", "hex")],
    ["a length of nothing", Buffer.from("00000000", "hex")],
    ["a length below the smallest frame", Buffer.from("0000000f", "hex")],
    ["headers that are longer than the frame", frameOf(header, body, size, 0x7fff_ffff)],
    ["headers that reach into the checksum", frameOf(header, body, size, header.length + body.length + 3)],
    ["a name that is longer than the headers", frameOf(Buffer.from("\xffname", "latin1"), body, 23, 5)],
    ["a value that is longer than the frame", frameOf(Buffer.from("\x01n\x07\xff\xff", "latin1"), body, 23, 5)],
    [
      "a value that reaches into the next frame",
      Buffer.concat([frameOf(Buffer.from("\x01n\x07\x00\x40", "latin1"), body, 23, 5), Buffer.alloc(64)]),
    ],
    ["a type that does not exist", frameOf(Buffer.from("\x01n\x0c", "latin1"), body, 21, 3)],
    ["a header that ends after its name", frameOf(Buffer.from("\x01n", "latin1"), body, 20, 2)],
  ])("a frame with %s is a failure of the provider", (_, bytes) => {
    const good = Buffer.from(withPayload, "hex");
    const reader = createFrameReader();
    const frames = reader.push(Buffer.concat([good, bytes]));
    // What came before it is read.
    expect(frames.next().done).toBe(false);
    expect(() => frames.next()).toThrow(/^the event stream has/);
  });

  test("an incomplete frame is waited for, however often its rest comes byte by byte", () => {
    const large = encodeFrame({}, Buffer.alloc(1024 * 1024, "x"));
    const { all, isInFrame } = read([large.subarray(0, -1)]);
    expect([all.length, isInFrame]).toEqual([0, true]);
    const pieces = Array.from({ length: 4096 }, (_, i) => large.subarray(i * 257, (i + 1) * 257));
    expect(read(pieces).all).toHaveLength(1);
  });
});
