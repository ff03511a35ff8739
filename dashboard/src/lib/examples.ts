/** A call that works on every installation. */
export const curlForChat = (serviceUrl: string, key: string): string =>
  `curl ${serviceUrl}/v1/chat/completions \\
  -H "authorization: Bearer ${key}" \\
  -H "content-type: application/json" \\
  -d '{"model": "local/chat", "messages": [{"role": "user", "content": "Hello"}]}'`;
