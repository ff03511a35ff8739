import type { Face } from "./native-formats.ts";
import { localModel } from "./service-setup.ts";

/** A body of the format whose field `x` is this JSON. */
export const bodyOf = (face: Face, x: string) => {
  const { path, body } = face.ask(localModel, "Hi", { x: 0 });
  return { path, body: JSON.stringify(body).replace('"x":0', () => `"x":${x}`) };
};
export const list = (count: number, itemOf: (index: number) => string) =>
  `[${Array.from({ length: count }, (_, i) => itemOf(i)).join()}]`;
export const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
