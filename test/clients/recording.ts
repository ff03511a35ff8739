/** What a client sent: test/clients/recorded, written by `npm run test:clients -- --record`. */
export interface Recording {
  readonly client: string;
  readonly version: string;
  readonly requests: readonly RecordedRequest[];
}

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  /** Where the key was. */
  readonly key: "authorization" | "x-api-key" | "x-goog-api-key" | "query" | "none";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Of the answer. */
  readonly status: number;
}
