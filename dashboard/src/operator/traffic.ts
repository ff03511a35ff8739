const clock = new Intl.DateTimeFormat("en-US", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
/** The start of a minute or an hour, in the reader's time zone. */
export const timeLabel = (at: number): string => clock.format(new Date(at * 1000));
