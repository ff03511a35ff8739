/**
 * For commands that may be made twice. ioredis sends again what a lost connection left unanswered, but it rejects the
 * rest of a pipeline that was answered in part.
 */
export async function untilAnswered<T>(command: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await command();
    } catch (error) {
      if ((error as Error).name !== "AbortError") throw error;
    }
  }
}
