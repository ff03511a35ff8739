import { answerInputs } from "./answer-inputs.ts";
import { headerInputs } from "./header-inputs.ts";
import type { HostileInput } from "./input.ts";
import { jsonInputs } from "./json-inputs.ts";
import { mediaInputs } from "./media-inputs.ts";
import { pipelinedInputs } from "./pipelined-inputs.ts";
import { schemaInputs } from "./schema-inputs.ts";

export const inputs: readonly HostileInput[] = [
  ...jsonInputs,
  ...headerInputs,
  ...pipelinedInputs,
  ...mediaInputs,
  ...schemaInputs,
  ...answerInputs,
];
