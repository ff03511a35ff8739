import { anthropicModel, type HostileInput, localModel, many, mebi, openaiModel, posting, send } from "./input.ts";
import { furtherPlaces, type Place, places } from "./json-places.ts";
import { type Shape, shapes } from "./json-shapes.ts";
import { longBodies } from "./long-bodies.ts";

const at = (
  [name, path, body, isObject]: Place,
  { name: shape, make, isShort }: Shape,
  short: boolean,
): HostileInput => ({
  kind: "json",
  name: `${shape}: ${name}`,
  isShort: short && isShort,
  prepare: posting(path, () => {
    const made = make();
    const x = isObject && !made.startsWith("{") ? `{"a":${made}}` : made;
    return JSON.stringify(body).replace('"X"', () => x);
  }),
});

/** Its conversation is stored, and read again. */
const stored: HostileInput = {
  kind: "json",
  name: "a stored conversation of 12 MB: responses to Anthropic",
  async prepare(target) {
    const ask = (more: object) =>
      send(target, "/v1/responses", { body: JSON.stringify({ model: anthropicModel, store: true, ...more }) });
    const { text } = await ask({ input: many(8_000, () => ({ role: "user", content: "ab ".repeat(500) })) });
    const { id } = JSON.parse(text) as { id?: string };
    return async () => (await ask({ previous_response_id: id, input: "Hi" })).status;
  },
};

/** A thousand references to one item of a response. */
const referring: HostileInput = {
  kind: "json",
  name: "1,000 references to an item of 18 KB: responses to Anthropic",
  async prepare(target) {
    const ask = (more: object) =>
      send(target, "/v1/responses", { body: JSON.stringify({ model: localModel, store: true, ...more }) });
    const { text } = await ask({ input: "tokens:3000" });
    const { output = [] } = JSON.parse(text) as { output?: readonly { readonly id: string }[] };
    const input = many(1_000, () => ({ type: "item_reference", id: output[0]?.id }));
    return async () => (await ask({ input })).status;
  },
};

/** Its text is hashed before the call is admitted. */
const idempotent = (["ab ", "漢", "\n"] as const).map(
  (unit): HostileInput => ({
    kind: "json",
    name: `20 MB of ${JSON.stringify(unit)} under an Idempotency-Key: chat`,
    prepare: (target) => {
      const content = unit.repeat((unit === "\n" ? 2 : 20) * (mebi / Buffer.byteLength(unit)) - 1_000);
      const body = JSON.stringify({ model: openaiModel, messages: [{ role: "user", content }] });
      let sent = 0;
      return async () => {
        const headers = { "idempotency-key": `${target.key.slice(-8)}${unit.length}${sent++}` };
        return (await send(target, "/v1/chat/completions", { body, headers })).status;
      };
    },
  }),
);

export const jsonInputs: readonly HostileInput[] = [
  ...shapes.flatMap((shape) => places.map((place, index) => at(place, shape, index === 2))),
  ...shapes.filter(({ isShort }) => isShort).flatMap((shape) => furtherPlaces.map((place) => at(place, shape, false))),
  ...longBodies.map(
    ([name, path, make, short]): HostileInput => ({
      kind: "json",
      name,
      isShort: short === true,
      prepare: posting(path, () => JSON.stringify(make())),
    }),
  ),
  stored,
  referring,
  ...idempotent,
];
