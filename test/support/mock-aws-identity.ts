import {
  type MockProvider,
  type MockRequest,
  type ProviderAnswer,
  startMockProvider,
  type Usual,
} from "./mock-provider.ts";

/**
 * A mock of what gives a machine its credentials: STS (`AssumeRoleWithWebIdentity`, form in, XML out:
 * https://docs.aws.amazon.com/STS/latest/APIReference/API_AssumeRoleWithWebIdentity.html), the endpoint of a container below
 * `/container`, and the metadata service of an instance below `/latest` (version 2, with its token).
 */
export interface Answer extends ProviderAnswer {
  /** The life of the credentials, one hour by default. */
  readonly lifeMs?: number;
}

interface Granted {
  readonly access_key_id: string;
  readonly secret_access_key: string;
  readonly session_token: string;
}

export const mockIdentity = {
  role: "arn:aws:iam::123456789012:role/inference",
  token: "eyJhbGciOiJSUzI1NiJ9.mock.web-identity",
  containerToken: "mock-container-token",
};

export const startMockIdentity = (granted: Granted): Promise<MockProvider<Answer>> =>
  startMockProvider<Answer>({
    usual: (request, scripted) => answerOf(request, scripted, granted),
    frame: () => "",
  });

const metadataToken = "mock-metadata-token";
const roles = "/latest/meta-data/iam/security-credentials/";

function answerOf(request: MockRequest, { lifeMs = 3_600_000 }: Answer, granted: Granted): Usual {
  const { method, path, headers } = request;
  const expires = new Date(Date.now() + lifeMs).toISOString();
  const json = {
    Code: "Success",
    Type: "AWS-HMAC",
    AccessKeyId: granted.access_key_id,
    SecretAccessKey: granted.secret_access_key,
    Token: granted.session_token,
    Expiration: expires,
  };
  if (path === "/container")
    return headers.authorization === mockIdentity.containerToken ? { body: json } : { status: 403, body: {} };
  if (method === "PUT" && path === "/latest/api/token") return { body: metadataToken };
  if (path.startsWith(roles)) {
    if (headers["x-aws-ec2-metadata-token"] !== metadataToken) return { status: 401, body: {} };
    return { body: path === roles ? "inference" : json };
  }
  return method === "POST" && path === "/" ? assumeRole(request, granted, expires) : { status: 404, body: {} };
}

const xml = (name: string, fields: Readonly<Record<string, string>>): string =>
  `<${name}>${Object.entries(fields)
    .map(([field, value]) => `<${field}>${value}</${field}>`)
    .join("")}</${name}>`;

const namespace = "https://sts.amazonaws.com/doc/2011-06-15/";

function assumeRole({ bytes }: MockRequest, granted: Granted, expires: string): Usual {
  const form = new URLSearchParams(bytes.toString());
  const headers = { "content-type": "text/xml" };
  const isValid =
    form.get("Action") === "AssumeRoleWithWebIdentity" &&
    form.get("Version") === "2011-06-15" &&
    form.get("RoleArn") === mockIdentity.role &&
    /^[\w+=,.@-]{2,64}$/.test(form.get("RoleSessionName") ?? "");
  if (!isValid || form.get("WebIdentityToken") !== mockIdentity.token) {
    const error = xml("Error", {
      Type: "Sender",
      Code: "InvalidIdentityToken",
      Message: `The token ${form.get("WebIdentityToken")} is not valid`,
    });
    return { status: 400, headers, body: `<ErrorResponse xmlns="${namespace}">${error}</ErrorResponse>` };
  }
  const credentials = xml("Credentials", {
    AccessKeyId: granted.access_key_id,
    SecretAccessKey: granted.secret_access_key,
    SessionToken: granted.session_token,
    Expiration: expires,
  });
  const result = `<AssumeRoleWithWebIdentityResult>${credentials}</AssumeRoleWithWebIdentityResult>`;
  return {
    headers,
    body: `<AssumeRoleWithWebIdentityResponse xmlns="${namespace}">${result}</AssumeRoleWithWebIdentityResponse>`,
  };
}
