import fc from "fast-check";
import { expect, test } from "vitest";
import { ServiceError, upstreamError } from "#errors";
import { responsesCodec } from "../../shared/formats/index.ts";
import { responsesConverter, responsesFailure } from "../../workers/conversion/responses/index.ts";
import { eventsOf, type Json } from "../support/formats-responses-assemble.ts";
import { runs } from "../support/property-runs.ts";

const identity = { model: "local/chat", created: 9, id: "chatcmpl-req_1" };
const estimate = { input: 1, output: 2 };

const names = `
  type role content output call_id name text summary id tools input messages choices delta message tool_calls function
  custom arguments index usage response item output_index error status reasoning_details reasoning_content logprobs
  namespace execution environment external_web_access description
  toString file image_url refusal format tool_choice response_format incomplete_details model encrypted_content
`
  .trim()
  .split(/\s+/);
const words = fc.constantFrom(
  ...`
  namespace tool_search tool_search_call tool_search_output additional_tools web_search web_search_call client
  message function_call custom_tool_call function_call_output reasoning item_reference function custom file_search shell
  input_text input_image input_file output_text text image_url user assistant tool system error failed length upl_x
  response.created response.output_item.added response.output_item.done response.output_text.delta response.completed
  response.failed response.function_call_arguments.done response.reasoning_summary_text.delta openai-responses-v1
  allowed_tools json_schema reasoning.encrypted https://a.example/x
`
    .trim()
    .split(/\s+/),
);
const { anything } = fc.letrec<{ anything: unknown }>((tie) => ({
  anything: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom<unknown>(null, true, 0, -1, 1e300, "", "x"),
    words,
    words,
    fc.array(tie("anything"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom(...names), tie("anything"), { maxKeys: 5 }),
  ),
}));
const objects = fc.dictionary(fc.constantFrom(...names), anything, { maxKeys: 6 });

/** Throws everything but a refusal that names a field. */
function outcome(act: () => unknown): "converted" | "refused" {
  try {
    act();
    return "converted";
  } catch (error) {
    if (error instanceof ServiceError && error.param) return "refused";
    throw error;
  }
}

test("a request of any shape is converted or refused by name, in both directions", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(objects, (request) => {
      seen.add(outcome(() => responsesConverter.requestToChat(request)));
      seen.add(outcome(() => responsesConverter.requestFromChat(request)));
      seen.add(
        outcome(() => responsesConverter.native.prepare(request, { model: "m", cap: 1, capField: "max_tokens" })),
      );
    }),
    { numRuns: runs(3000) },
  );
  expect([...seen].toSorted()).toEqual(["converted", "refused"]);
});

const parsed = fc.dictionary(
  fc.constantFrom("input", "tools", "text", "reasoning", "include", "tool_choice", "instructions", "metadata"),
  anything,
  { maxKeys: 4 },
);

test("any body is parsed or refused by name; a parsed one is converted or refused by name", () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(parsed, (fields) => {
      const body = { model: "gpt-5", input: "Hello", ...fields };
      const read = outcome(() => responsesCodec.parse(body, 100));
      seen.add(read);
      if (read === "converted") outcome(() => responsesConverter.requestToChat(body));
    }),
    { numRuns: runs(3000) },
  );
  expect([...seen].toSorted()).toEqual(["converted", "refused"]);
});

test("a response of any shape is converted", () => {
  fc.assert(
    fc.property(objects, objects, (answer, request) => {
      expect(responsesConverter.responseFromChat(answer, identity, request)).toMatchObject({ object: "response" });
      expect(JSON.stringify(responsesConverter.responseToChat(answer))).toBeTruthy();
      expect(responsesConverter.native.finish(answer, identity, estimate)["model"]).toBe("local/chat");
      responsesConverter.native.usage(answer);
      responsesFailure(answer);
    }),
    { numRuns: runs(2000) },
  );
});

test("chunks and events of any shape make whole events, numbered in order", () => {
  fc.assert(
    fc.property(fc.array(objects, { maxLength: 5 }), (each) => {
      const toChat = responsesConverter.streamToChat();
      for (const event of each) expect(Array.isArray(toChat.write(event))).toBe(true);
      const streams = [responsesConverter.streamFromChat(identity, {}), responsesConverter.native.stream(identity)];
      for (const stream of streams) {
        const text = each.map((item) => stream.write(item)).join("");
        eventsOf(text + stream.end(estimate) + stream.fail?.(upstreamError("Broken.")));
        expect(stream.outputBytes()).toBeGreaterThanOrEqual(0);
      }
      const chat = responsesConverter.streamFromChat(identity, {});
      const events = eventsOf(each.map((item) => chat.write(item)).join("") + chat.end(estimate));
      expect(events.map((event: Json) => event["sequence_number"])).toEqual(events.map((_, e) => e));
    }),
    { numRuns: runs(2000) },
  );
});

test("states of one item share its summary, however many there are", () => {
  const shared = { format: "openai-responses-v1", id: "rs_1", index: 0 };
  const reasoning_details = [
    { type: "reasoning.summary", summary: "x".repeat(10_000), ...shared },
    ...Array.from({ length: 2_000 }, () => ({ type: "reasoning.encrypted", data: "x", ...shared })),
  ];
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Ho", reasoning_details },
  ];
  const target = { model: "m", cap: 1, capField: "max_tokens", hiddenReasoning: true } as const;
  const { request } = responsesConverter.requestFromChat({ model: "m", messages }, target);
  expect(JSON.stringify(request).length).toBeLessThan(2 * JSON.stringify(messages).length);
});
