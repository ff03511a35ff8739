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

/** A call that is answered with a job, on every installation. */
export const curlForJob = (serviceUrl: string): string =>
  `curl ${serviceUrl}/v1/images/generations \\
  -H "authorization: Bearer $API_KEY" \\
  -H "content-type: application/json" \\
  -H "prefer: respond-async" \\
  -d '{"model": "local/image", "prompt": "A lighthouse"}'`;

/** A batch without a file, on every installation. */
export const curlForBatch = (serviceUrl: string): string =>
  `curl ${serviceUrl}/v1/batches \\
  -H "authorization: Bearer $API_KEY" \\
  -H "content-type: application/json" \\
  -d '{"endpoint": "/v1/chat/completions", "completion_window": "24h", "requests": [
    {"custom_id": "1", "body": {"model": "local/chat", "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}]}}]}'`;
