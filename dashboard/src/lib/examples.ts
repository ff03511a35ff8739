/** An upload of a file from the current folder. */
export const curlForUpload = (serviceUrl: string): string =>
  `curl ${serviceUrl}/v1/uploads \\
  -H "authorization: Bearer $API_KEY" \\
  -H "content-type: image/png" \\
  --data-binary @image.png`;

/** A call that works on every installation. */
export const curlForChat = (serviceUrl: string, key: string): string =>
  `curl ${serviceUrl}/v1/chat/completions \\
  -H "authorization: Bearer ${key}" \\
  -H "content-type: application/json" \\
  -d '{"model": "local/chat", "messages": [{"role": "user", "content": "Hello"}]}'`;
