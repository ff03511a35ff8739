const clock = new Intl.DateTimeFormat("en-US", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
/** When a minute or an hour begins, by the reader's clock. */
export const timeLabel = (at: number): string => clock.format(new Date(at * 1000));
