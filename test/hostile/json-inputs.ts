import { anthropicModel, type HostileInput, many, posting, send } from "./input.ts";
import { furtherPlaces, type Place, places } from "./json-places.ts";
import { type Shape, shapes } from "./json-shapes.ts";
import { longBodies } from "./long-bodies.ts";

const at = (
  { name, path, body, isObject }: Place,
  { name: shape, make, isShort }: Shape,
  short: boolean,
): HostileInput => ({
  kind: "json",
  name: `${shape}: ${name}`,
  isShort: short && isShort === true,
  prepare: posting(path, () => {
    const made = make();
    const x = isObject && !made.startsWith("{") ? `{"a":${made}}` : made;
    return JSON.stringify(body).replace('"X"', () => x);
  }),
});

/** Its conversation is stored, and read again. */
const stored: HostileInput = {
  kind: "json",
  name: "a stored conversation of 10 MB: responses to Anthropic",
  async prepare(target) {
    const ask = (more: object) =>
      send(target, "/v1/responses", { body: JSON.stringify({ model: anthropicModel, store: true, ...more }) });
    const { text } = await ask({ input: many(8_000, () => ({ role: "user", content: "ab ".repeat(100) })) });
    const { id } = JSON.parse(text) as { id?: string };
    return async () => (await ask({ previous_response_id: id, input: "Hi" })).status;
  },
};

const isShort = (shape: Shape) => shape.isShort === true;

export const jsonInputs: readonly HostileInput[] = [
  ...shapes.flatMap((shape) => places.map((place, index) => at(place, shape, index === 2))),
  ...shapes.filter(isShort).flatMap((shape) => furtherPlaces.map((place) => at(place, shape, false))),
  ...longBodies.map(
    ([name, path, make, short]): HostileInput => ({
      kind: "json",
      name,
      isShort: short === true,
      prepare: posting(path, () => JSON.stringify(make())),
    }),
  ),
  stored,
];
