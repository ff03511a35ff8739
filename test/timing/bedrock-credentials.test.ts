import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { mockIdentity, startMockIdentity } from "../support/mock-aws-identity.ts";
import { mockSession } from "../support/mock-bedrock.ts";
import { startBedrock } from "../support/provider-setup.ts";

// The library waits a second for the answer of a machine.
afterEach(() => void vi.unstubAllEnvs());

test.each([
  [
    "a container's",
    (url: string) => ({
      AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/container`,
      AWS_CONTAINER_AUTHORIZATION_TOKEN: mockIdentity.containerToken,
    }),
  ],
  ["an instance's", (url: string) => ({ AWS_EC2_METADATA_SERVICE_ENDPOINT: url })],
])("the identity of the machine may be %s", async (_, environment) => {
  const source = await startMockIdentity(mockSession);
  onTestFinished(() => source.close());
  const env: Record<string, string> = environment(source.url);
  // The library reads these of the process, which are the same ones.
  for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
  const { mock, ask } = await startBedrock({ apiKey: "identity", env });
  for (let time = 0; time < 2; time++) await ask("answer");
  expect(mock.requests[1]?.headers["x-amz-security-token"]).toBe(mockSession.session_token);
  const asked = source.requests.length;
  await ask("answer");
  expect(source.requests).toHaveLength(asked);
});
