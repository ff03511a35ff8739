import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { atMost, type Clock } from "#platform/clock";

/** A client that sends more requests than this ahead of their responses is cut off. */
const maxUnfinished = 16;
/** A client that has read nothing for this long is cut off. */
const stalledMs = 30_000;
const checkMs = 1_000;
/** Complete responses that clients have not read yet may take this much memory together. */
const maxUnsentBytes = 64 * 1024 * 1024;
/**
 * If memory for responses runs out, those who have read nothing for this long are cut off, then those whose responses have
 * waited longest.
 */
export const idleMs = 2_000;

type Response = Parameters<RequestListener>[1];

interface Connection {
  /** The responses that have not ended, in order. The request of the first one is served, the others wait. */
  readonly unfinished: Set<Response>;
  /**
   * When the connection was opened or its last response ended, in milliseconds of the monotonic clock, and the bytes
   * received by then.
   */
  idleSince: number;
  idleAtBytes: number;
  /** When the client last read, as of the last second, and the bytes that the kernel had accepted by then. */
  readAt: number;
  readBytes: number;
  /** The client is cut off when it has read nothing of the response that is being served for this long. */
  patienceMs: number;
}

const connectionOf = new WeakMap<Socket, Connection>();

/** Allows the client to read nothing of this response for longer than 30 s. */
export function allowPauses({ socket }: ServerResponse, ms: number): void {
  const connection = socket && connectionOf.get(socket);
  if (connection) connection.patienceMs = ms;
}

/** Two internal fields of Node's sockets (lib/net.js, lib/_http_server.js). */
interface NodeSocket extends Socket {
  readonly _handle?: { readonly bytesWritten: number; readonly writeQueueSize: number } | null;
  readonly parser?: { onIncoming: (req: IncomingMessage, keepAlive: boolean) => number } | null;
}

/** The bytes of a connection that the kernel has accepted. The socket itself counts a write once all of it was accepted. */
function sentBytes(socket: NodeSocket): number {
  const { bytesWritten, writeQueueSize } = socket._handle ?? { bytesWritten: 0, writeQueueSize: 0 };
  return bytesWritten - writeQueueSize;
}

/** Returns true if the client has read nothing since this time, although something waits for it. Unix milliseconds. */
export function hasReadNothingSince(socket: Socket | null, time: number): boolean {
  const connection = socket && connectionOf.get(socket);
  return !!connection && connection.readAt <= time && connection.readBytes === sentBytes(socket);
}

/**
 * The connections of the HTTP server: what one of them may cost, and how they end when the server stops.
 *
 * The requests of a connection are served one after the other: a pipelined one opens and renders nothing before the response
 * to the one before it was sent. So a connection has one unsent response at most, whoever reads it or not.
 */
export function trackConnections(server: Server, serve: RequestListener, clock: Clock) {
  const connections = new Map<Socket, Connection>();
  let onIdle: (socket: Socket, connection: Connection) => void = () => {};
  /** Bytes of complete responses that the kernel has not accepted, in the order in which the responses were completed. */
  const unsent = new Map<Socket, number>();
  let unsentBytes = 0;

  server.on("connection", (socket: Socket) => {
    const unfinished = new Set<Response>();
    const idle = { idleSince: performance.now(), idleAtBytes: 0 };
    const connection = { unfinished, ...idle, readAt: clock.now(), readBytes: 0, patienceMs: stalledMs };
    connections.set(socket, connection);
    connectionOf.set(socket, connection);
    socket.once("close", () => {
      connections.delete(socket);
      forget(socket);
    });
    cutBeyond(socket, () => unfinished.size >= maxUnfinished);
  });
  const take: RequestListener = (req, res) => {
    const { socket } = req;
    const connection = connections.get(socket);
    if (!connection) return;
    const { unfinished } = connection;
    unfinished.add(res);
    res.once("close", () => {
      const [served] = unfinished;
      unfinished.delete(res);
      const [next] = unfinished;
      connection.idleSince = performance.now();
      connection.idleAtBytes = socket.bytesRead;
      connection.patienceMs = stalledMs;
      if (served === res) forget(socket);
      // The response may have been the last one of its connection.
      if (served === res && next && socket.writable) serve(next.req, next);
      else onIdle(socket, connection);
    });
    res.once("prefinish", () => countUnsent(socket, res.writableLength));
    if (unfinished.size === 1) serve(req, res);
  };
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.on(event, take);

  function countUnsent(socket: Socket, bytes: number): void {
    if (bytes === 0) return;
    unsent.set(socket, bytes);
    unsentBytes += bytes;
    if (unsentBytes <= maxUnsentBytes) return;
    const since = clock.now() - idleMs;
    for (const other of unsent.keys()) if (hasReadNothingSince(other, since)) cut(other);
    for (const other of unsent.keys()) if (unsentBytes > maxUnsentBytes) cut(other);
  }

  function cut(socket: Socket): void {
    socket.destroy();
    forget(socket);
  }

  function forget(socket: Socket): void {
    unsentBytes -= unsent.get(socket) ?? 0;
    unsent.delete(socket);
  }

  function cutStalled(): void {
    const now = clock.now();
    for (const [socket, connection] of connections) {
      const bytes = sentBytes(socket);
      if (socket.writableLength === 0 || bytes !== connection.readBytes)
        Object.assign(connection, { readAt: now, readBytes: bytes });
      else if (now - connection.readAt >= connection.patienceMs)
        // If this process itself was stalled, it first learns what was sent meanwhile.
        setImmediate(() => {
          if (socket.writableLength > 0 && sentBytes(socket) === bytes) socket.destroy();
        });
    }
  }
  server.once("close", clock.every(checkMs, cutStalled));

  /**
   * Stops accepting connections, and closes each one once it has been idle for `idleMs`: a client that used it a moment ago
   * is likely to use it again, and a request sent while it is being closed is lost. Resolves when none is open.
   */
  function close(idleMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => server.once("close", resolve));
    onIdle = (socket, connection) => {
      if (connection.unfinished.size > 0) return;
      const { idleSince } = connection;
      const closeUnlessUsed = () => {
        const isUsed = connection.unfinished.size > 0 || connection.idleSince !== idleSince;
        // Bytes received since then are part of a request.
        if (!isUsed && socket.bytesRead === connection.idleAtBytes) socket.destroy();
      };
      const remainingMs = idleMs - (performance.now() - idleSince);
      if (remainingMs <= 0) closeUnlessUsed();
      else socket.once("close", clock.after(remainingMs, closeUnlessUsed));
    };
    // `close` of the HTTP server would close all idle connections at once, and stop timing out the others.
    NetServer.prototype.close.call(server);
    for (const [socket, connection] of connections) onIdle(socket, connection);
    return closed;
  }

  return {
    close,
    unfinished: (socket: Socket): readonly ServerResponse[] => [...(connections.get(socket)?.unfinished ?? [])],

    /** Sends `Connection: close` in every response that has not begun. The app does so in responses to later requests. */
    announceClose(): void {
      for (const { unfinished } of connections.values())
        for (const res of unfinished) if (!res.headersSent) res.setHeader("connection", "close");
    },

    /** Closes idle connections now, and after `ms` those whose last bytes have not been read. */
    async end(ms: number): Promise<void> {
      await atMost(clock, ms, close(0));
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Tells the parser that what follows is not HTTP. */
const upgraded = 2;

/**
 * Cuts the connection at a request for which it is full. Node parses 64 KB at once, which can be 1,700 requests and take 30 ms,
 * so the parser must not go on with the rest of them.
 */
function cutBeyond(socket: NodeSocket, isFull: () => boolean): void {
  const { parser } = socket;
  if (!parser) return;
  const accept = parser.onIncoming;
  parser.onIncoming = (req, keepAlive) => {
    if (!isFull()) return accept(req, keepAlive);
    socket.destroy();
    return upgraded;
  };
}
