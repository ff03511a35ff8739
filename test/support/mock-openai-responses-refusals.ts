import type { Usual } from "./mock-provider.ts";

type Fields = Readonly<Record<string, unknown>>;

const listed = (value: unknown) => (Array.isArray(value) ? (value as readonly Fields[]) : []);

export const doesReason = (model: unknown): boolean => /^(o\d|gpt-[5-9](?!.*-chat))/.test(String(model));

const error = (status: number, param: string, message: string, code: string | null = null): Usual => ({
  status,
  body: { error: { message, type: "invalid_request_error", param, code } },
});

/**
 * The server's refusals in its own words, as its users report them: https://github.com/microsoft/agent-framework/issues/7483
 * (`include`), https://github.com/can1357/oh-my-pi/issues/41 (items without their content).
 */
export function refusalOf({ model, store, include, reasoning, input }: Fields): Usual | undefined {
  const thoughts = listed(input).filter(({ type }) => type === "reasoning");
  const hollow = thoughts.find(({ encrypted_content, content }) => encrypted_content == null && content == null);
  if (hollow)
    return error(
      404,
      "input",
      `Item with id '${String(hollow["id"])}' not found.${store === false ? " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input." : ""}`,
    );
  if (doesReason(model)) return undefined;
  if (Array.isArray(include) && include.includes("reasoning.encrypted_content"))
    return error(400, "include", "Encrypted content is not supported with this model.");
  if (thoughts.length > 0)
    return error(
      400,
      "input",
      "Reasoning input items can only be provided to a reasoning or computer use model. Remove reasoning items from your input and try again.",
    );
  const option = ["effort", "summary"].find((field) => (reasoning as Fields | undefined)?.[field] != null);
  return option === undefined
    ? undefined
    : error(
        400,
        `reasoning.${option}`,
        `Unsupported parameter: 'reasoning.${option}' is not supported with this model.`,
        "unsupported_parameter",
      );
}
