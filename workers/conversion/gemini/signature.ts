import { type JsonObject, object, text } from "#formats";

/**
 * Reasoning state as it crosses chat, where the provider's own chat interface has it: beside a tool call for that call's
 * part, beside the message (or its delta) for its text.
 */
export const signatureOf = (holder: JsonObject): string =>
  text(object(object(holder["extra_content"])["google"])["thought_signature"]);

/** The field that carries it; nothing where there is none. */
export const signed = (signature: unknown): { extra_content?: JsonObject } =>
  text(signature) ? { extra_content: { google: { thought_signature: signature } } } : {};

/** What the provider's documentation has for calls that it did not make itself; without any it answers 400. */
export const foreignSignature = "skip_thought_signature_validator";
