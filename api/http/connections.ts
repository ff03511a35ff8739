import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { atMost, type Clock } from "#platform/clock";

interface Connection {
  /** Responses that have not ended; several if the client pipelines requests. */
  readonly unfinished: Set<ServerResponse>;
  /**
   * When the connection was opened or its last response ended, in milliseconds of the monotonic clock, and the bytes
   * received by then.
   */
  idleSince: number;
  idleAtBytes: number;
}

/** The connections of the HTTP server, and how they end when it stops. */
export function trackConnections(server: Server, clock: Clock) {
  const connections = new Map<Socket, Connection>();
  let onIdle: (socket: Socket, connection: Connection) => void = () => {};

  server.on("connection", (socket: Socket) => {
    connections.set(socket, { unfinished: new Set(), idleSince: performance.now(), idleAtBytes: 0 });
    socket.once("close", () => connections.delete(socket));
  });
  const note = ({ socket }: IncomingMessage, res: ServerResponse) => {
    const connection = connections.get(socket);
    if (!connection) return;
    connection.unfinished.add(res);
    res.once("close", () => {
      connection.unfinished.delete(res);
      connection.idleSince = performance.now();
      connection.idleAtBytes = socket.bytesRead;
      onIdle(socket, connection);
    });
  };
  for (const event of ["request", "checkContinue", "checkExpectation"]) server.prependListener(event, note);

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
