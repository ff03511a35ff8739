/** Names each variable that is missing or invalid. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly faults: readonly string[];

  constructor(message: string, faults: readonly string[] = [message]) {
    super(message);
    this.faults = faults;
  }
}

export const configError = (...faults: readonly string[]): ConfigError =>
  new ConfigError(`The configuration is not valid.\n  ${faults.join("\n  ")}`, faults);
