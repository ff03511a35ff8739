import { type Loose, object } from "../loose.ts";
import { text } from "../read.ts";

/**
 * Reasoning state as it crosses chat, where the maker's own chat interface has it: beside a tool call for that call's
 * part, beside the message (or its delta) for its text.
 */
export const signatureOf = (holder: Loose): string =>
  text(object(object(holder["extra_content"])["google"])["thought_signature"]);

/** The field that carries it; nothing where there is none. */
export const signed = (signature: unknown): { extra_content?: Loose } =>
  text(signature) ? { extra_content: { google: { thought_signature: signature } } } : {};

/** What the maker's documentation has for calls that it did not make itself; without any it answers 400. */
export const foreignSignature = "skip_thought_signature_validator";
