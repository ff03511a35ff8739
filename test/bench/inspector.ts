/** Connects to the inspector of a process that was started with `--inspect`. */
export async function openInspector(port: number, host = "127.0.0.1") {
  const list = await fetch(`http://${host}:${port}/json/list`);
  const [page] = (await list.json()) as { webSocketDebuggerUrl: string }[];
  if (!page) throw new Error(`no inspector on port ${port}`);
  const socket = new WebSocket(page.webSocketDebuggerUrl);
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  let lastId = 0;
  return {
    post: (method: string): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const id = ++lastId;
        socket.addEventListener("message", ({ data }) => {
          const answer = JSON.parse(String(data)) as { id?: number; result?: unknown; error?: { message: string } };
          if (answer.id !== id) return;
          if (answer.error) reject(new Error(`${method}: ${answer.error.message}`));
          else resolve(answer.result);
        });
        socket.addEventListener("close", () => reject(new Error(`${method}: the process is gone`)));
        socket.send(JSON.stringify({ id, method }));
      }),
    close: () => socket.close(),
  };
}
