import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { Server as NetServer, type Socket } from "node:net";
import { atMost, type Clock } from "#platform/clock";

interface Connection {
  /** It may carry several requests at once. */
  readonly unfinished: Set<ServerResponse>;
  /** When it was opened, or its last answer ended: milliseconds of the monotonic clock, and the bytes that it had brought. */
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
   * Accepts no more connections, and closes each one when it has been idle for `idleMs`: a client that used it a moment ago is
   * likely to use it again, and a request that comes while it is closed is lost to the caller. Resolves when none is open.
   */
  function close(idleMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => server.once("close", resolve));
    onIdle = (socket, connection) => {
      if (connection.unfinished.size > 0) return;
      const { idleSince } = connection;
      const closeUnlessUsed = () => {
        const isUsed = connection.unfinished.size > 0 || connection.idleSince !== idleSince;
        // What came since is a part of a request.
        if (!isUsed && socket.bytesRead === connection.idleAtBytes) socket.destroy();
      };
      const remainingMs = idleMs - (performance.now() - idleSince);
      if (remainingMs <= 0) closeUnlessUsed();
      else socket.once("close", clock.after(remainingMs, closeUnlessUsed));
    };
    // That of the HTTP server would close all idle connections at once, and stop timing out those that are not.
    NetServer.prototype.close.call(server);
    for (const [socket, connection] of connections) onIdle(socket, connection);
    return closed;
  }

  return {
    close,
    unfinished: (socket: Socket): readonly ServerResponse[] => [...(connections.get(socket)?.unfinished ?? [])],

    /** Asks for a new connection in every answer that has not begun; the app does so in the answers to later requests. */
    announceClose(): void {
      for (const { unfinished } of connections.values())
        for (const res of unfinished) if (!res.headersSent) res.setHeader("connection", "close");
    },

    /** Closes what is idle now, and after `ms` the connections whose last bytes were not read. */
    async end(ms: number): Promise<void> {
      await atMost(clock, ms, close(0));
      server.close();
      server.closeAllConnections();
    },
  };
}
