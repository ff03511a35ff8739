import fc from "fast-check";
import { expect, test } from "vitest";
import { geminiConverter } from "../../workers/conversion/gemini/index.ts";
import { google, type Json } from "../support/formats-gemini-assemble.ts";

const call = (id: string, name: string, args: string, more: Json = {}): Json => ({
  id,
  type: "function",
  function: { name, arguments: args },
  ...more,
});

const word = fc.string({ minLength: 1, maxLength: 12 });
const plainJson = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.oneof(word, fc.integer(), fc.boolean()));
const step = fc.record({
  ask: word,
  say: fc.option(word, { nil: null }),
  calls: fc.array(
    fc.record({
      name: fc.constantFrom("f", "g"),
      args: plainJson,
      result: word.filter((each) => !each.trimStart().startsWith("{")),
      signature: fc.option(fc.constantFrom("c2ln", "b25l"), { nil: undefined }),
    }),
    { maxLength: 3 },
  ),
});

test("a conversation comes back from the format as it went in", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 4 }), (steps) => {
      let count = 0;
      const messages = steps.flatMap(({ ask, say, calls }) => {
        const made = calls.map((each) => ({ ...each, id: `id_${count++}` }));
        if (say === null && made.length === 0)
          return [
            { role: "user", content: ask },
            { role: "assistant", content: "!" },
          ];
        return [
          { role: "user", content: ask },
          {
            role: "assistant",
            content: say,
            ...(made.length > 0 && {
              tool_calls: made.map(({ id, name, args, signature }) =>
                call(id, name, JSON.stringify(args), signature ? google(signature) : {}),
              ),
            }),
          },
          ...made.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result })),
        ];
      });
      // An older model: it needs no marks on the calls of others.
      const there = geminiConverter.requestFromChat({ model: "gemini-2.5-flash", messages }).request;
      expect(geminiConverter.requestToChat(there).request["messages"]).toEqual(messages);
    }),
  );
});
