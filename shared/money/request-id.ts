const pattern = /^req_[0-9A-Za-z]{1,64}$/;

export const isRequestId = (id: string): boolean => pattern.test(id);

/** A request id becomes part of a path in an update. One with a dot or a dollar must never get there. */
export function assertRequestId(id: string): void {
  if (!isRequestId(id)) throw new TypeError(`not a request id: ${JSON.stringify(id)}`);
}
