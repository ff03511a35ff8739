import { invalidValue } from "#errors";
import { isSet, type JsonObject, object } from "../json.ts";
import type { ResponsesRequest } from "./request.ts";

export function refuseKept(param: string): never {
  throw invalidValue(param, `${param}: what is kept at the provider cannot be used here; send it itself.`);
}

/** Tenants share the operator's provider key: what is kept at the provider under an id may be another tenant's. */
export function refuseStored(request: ResponsesRequest): void {
  for (const field of ["previous_response_id", "conversation", "container"])
    if (isSet(request[field])) refuseKept(field);
  if (request.background) refuseKept("background");
  if (isSet(request["prompt"])) refuseKept("prompt.id");
  if (isSet(object(request.prompt_cache_options)["comparison_response_id"]))
    refuseKept("prompt_cache_options.comparison_response_id");
}

/** Orders for work that the bound and the bill know nothing of. */
export function refuseUnbounded(request: ResponsesRequest): void {
  const refuse = (param: string, why: string) => {
    throw invalidValue(param, `${param}: ${why}.`);
  };
  if (isSet(request["context_management"])) refuse("context_management", "what the provider runs is not supported");
  const { mode } = object(request.reasoning);
  if (isSet(mode) && mode !== "standard") refuse("reasoning.mode", "only standard is supported");
  if (isSet(request["n"]) && request["n"] !== 1) refuse("n", "this format has one answer");
  const { modalities } = request;
  if (Array.isArray(modalities) && modalities.some((each) => each !== "text"))
    refuse("modalities", "only text is supported");
}

/** Tools that the caller runs. All others run at the provider. */
const callersTools: readonly string[] = ["function", "custom", "namespace", "apply_patch", "local_shell", "shell"];
/** Of them those whose description the provider writes into the prompt. */
const describedByProvider: readonly string[] = ["apply_patch", "local_shell", "shell"];
/** At most, in tokens of the prompt. */
const describedTokens = 1024;

function checkTool(tool: JsonObject, at: string, types: readonly string[]): void {
  if (isSet(tool["vector_store_ids"])) refuseKept(`${at}.vector_store_ids`);
  if (isSet(tool["container"])) refuseKept(`${at}.container`);
  const { type, name, tools, environment } = tool;
  if (typeof type !== "string" || !types.includes(type))
    throw invalidValue(`${at}.type`, `${at}.type: tools that the provider runs are not supported.`);
  if (!describedByProvider.includes(type) && (typeof name !== "string" || name === ""))
    throw invalidValue(`${at}.name`, `${at}.name must be a string.`);
  if (type === "namespace" && Array.isArray(tools))
    tools.forEach((each: unknown, t) => {
      checkTool(object(each), `${at}.tools[${t}]`, ["function", "custom"]);
    });
  if (type === "shell" && object(environment)["type"] !== "local")
    throw invalidValue(
      `${at}.environment`,
      `${at}.environment: only a local shell, which the caller runs, is supported.`,
    );
}

/** Refuses what the provider would run. The prompt tokens that tools bring along beside their bytes. */
export function checkTools({ tools, tool_choice }: ResponsesRequest): number {
  tools?.forEach((tool, t) => {
    checkTool(tool, `tools[${t}]`, callersTools);
  });
  const choice = object(tool_choice)["type"];
  if (choice !== undefined && choice !== "allowed_tools" && !callersTools.includes(choice as string))
    throw invalidValue("tool_choice.type", "tool_choice.type: tools that the provider runs are not supported.");
  return describedTokens * (tools?.filter(({ type }) => describedByProvider.includes(type)).length ?? 0);
}
