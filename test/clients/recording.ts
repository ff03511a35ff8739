/** A client's requests: test/clients/recorded, written by `npm run test:clients -- --record`. */
export interface Recording {
  readonly client: string;
  readonly version: string;
  readonly requests: readonly RecordedRequest[];
}

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  /** The header or parameter of the key. */
  readonly key: "authorization" | "x-api-key" | "x-goog-api-key" | "query" | "none";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The status of the response. */
  readonly status: number;
}
