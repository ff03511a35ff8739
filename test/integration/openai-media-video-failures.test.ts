import { describe, expect, test } from "vitest";
import { type AbortCause, Aborted } from "../../workers/running.ts";
import { type MockOpenai, mockError } from "../support/mock-openai.ts";
import { startMedia } from "../support/openai-media-setup.ts";
import { errorOf } from "../support/upstreams-setup.ts";

const fox = { prompt: "a fox", seconds: "8", size: "1280x720" };
const asked = (mock: MockOpenai) =>
  mock.requests.map(({ method, path }) => `${method} ${path.replace("/v1/videos", "")}`);

describe("a failed poll does not fail the job", () => {
  test("with any error, or without an answer", async () => {
    const { mock, clock, provider, call } = await startMedia();
    mock.respond(
      {},
      mockError(500, "oops"),
      { cutAfter: -1 },
      { body: "<html>" },
      { body: { id: "video_1", status: "sleeping" } },
      mockError(404, "not yet"),
      { beforeHeaders: new Promise(() => {}) },
      mockError(429, "Slow down", { headers: { "retry-after": "20" } }),
    );
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 3_000, 4_500, 6_750, 10_000, 10_000);
    await mock.request(6);
    await clock.pass(30_000, 10_000, 20_000);
    expect((await made).usage).toEqual({ second: 8 });
    expect(mock.requests).toHaveLength(10);
  });

  test("nor do many, if others between them succeed", async () => {
    const { mock, clock, provider, call } = await startMedia();
    const [no, yes] = [mockError(404, "no"), { body: { id: "video_1", status: "in_progress" } }];
    mock.respond({}, no, no, yes, no, no, yes, no);
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 3_000, 4_500, 6_750, 10_000, 10_000, 10_000, 10_000);
    expect((await made).usage).toEqual({ second: 8 });
  });

  test("but after five minutes of failures the job fails, and is removed at the provider", async () => {
    const { mock, clock, provider, call } = await startMedia();
    mock.respond({ states: ["in_progress"] });
    const failure = errorOf(provider.generate(call("video", fox)));
    await clock.pass(2_000);
    mock.always(mockError(503, "down"));
    await clock.pass(3_000, 4_500, 6_750, ...Array.from({ length: 29 }, () => 10_000));
    expect(await failure).toMatchObject({ kind: "unavailable", status: 503 });
    expect(asked(mock).filter((each) => each.startsWith("GET"))).toHaveLength(33);
    await mock.request(34);
    expect(asked(mock).at(-1)).toBe("DELETE /video_1");
  });

  test.each([
    ["there is no such job", 404],
    ["the key is not accepted", 401],
  ])("said three times, that %s is believed", async (_, status) => {
    const { mock, clock, provider, call } = await startMedia();
    mock.respond({}, mockError(status, "no"), mockError(status, "no"), mockError(status, "no"));
    const failure = errorOf(provider.generate(call("video", fox)));
    await clock.pass(2_000, 3_000, 4_500);
    expect(await failure).toMatchObject({ kind: "misconfigured", status });
  });
});

describe("a job that fails", () => {
  test.each([
    [
      { code: "moderation_blocked", message: "Blocked by the safety system." },
      "refused",
      "Blocked by the safety system.",
    ],
    [{ code: "bad_size", type: "invalid_request_error", message: "No.", param: "size" }, "refused", "No."],
    [{ code: "rate_limit_exceeded", message: "Full." }, "busy", "status 429: Full."],
    [{ code: "server_error", message: "It broke." }, "unavailable", "status 500: It broke."],
    [null, "unavailable", "status 500"],
  ])("%j", async (error, kind, message) => {
    const { mock, clock, provider, stored, call } = await startMedia();
    mock.respond({}, { body: { id: "video_1", status: "failed", error } });
    const failure = errorOf(provider.generate(call("video", fox)));
    await clock.pass(2_000);
    expect(await failure).toMatchObject({ kind, message });
    expect(stored).toEqual([]);
  });

  test("names the caller's own field", async () => {
    const { mock, clock, provider, call } = await startMedia();
    const error = { type: "invalid_request_error", message: "No.", param: "seconds" };
    mock.respond({ states: ["failed"], error }, {}, {}, mockError(400, "No.", { param: "size" }));
    const failure = errorOf(provider.generate(call("video", { prompt: "a fox", duration: 9 })));
    await clock.pass(2_000);
    expect(await failure).toMatchObject({ kind: "refused", param: "input.duration" });
    await mock.request(2);
    expect(await errorOf(provider.generate(call("video", fox)))).toMatchObject({ param: "input.size" });
  });

  test.each([
    ["refused at once", mockError(400, "moderated", { code: "moderation_blocked" }), "refused"],
    ["full", mockError(429, "Slow down", { headers: { "retry-after": "5" } }), "busy"],
    ["an answer without an id", { body: { status: "queued" } }, "unavailable"],
  ])("%s: there is no job", async (_, answer, kind) => {
    const { mock, provider, call } = await startMedia();
    mock.respond(answer);
    const remember = () => Promise.reject(new Error("there is none"));
    expect(await errorOf(provider.generate(call("video", fox, { remember })))).toMatchObject({ kind });
    expect(mock.requests).toHaveLength(1);
  });

  test("a video of the provider's own store is refused", async () => {
    const { mock, provider, call } = await startMedia();
    for (const input of [{ remix_video_id: "video_1" }, { input_reference: { file_id: "file-1" } }])
      expect(await errorOf(provider.generate(call("video", { ...fox, ...input })))).toMatchObject({
        kind: "refused",
        param: expect.stringMatching(/^input\.(remix_video_id|input_reference\.file_id)$/) as unknown,
      });
    expect(mock.requests).toEqual([]);
  });
});

describe("a caller who disconnects", () => {
  const leave = async (cause: AbortCause) => {
    const { mock, clock, provider, stored, call } = await startMedia();
    mock.respond({ states: ["in_progress"] });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("video", fox, { signal: caller.signal })));
    await clock.pass(2_000, 3_000);
    const look = await mock.request(2);
    const reason = new Aborted(cause);
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await look.closed;
    return { mock, clock, stored };
  };

  test.each(["disconnected", "gone", "deadline"] as const)(
    "(%s) is let go at once, and the job is removed",
    async (cause) => {
      const { mock, stored } = await leave(cause);
      await (await mock.request(3)).closed;
      expect(asked(mock).at(-1)).toBe("DELETE /video_1");
      expect(stored).toEqual([]);
    },
  );

  test.each(["lost", "shutdown"] as const)(
    "(%s) takes the job along: another worker goes on with it",
    async (cause) => {
      const { mock, clock } = await leave(cause);
      // Any further request has been sent by then.
      await new Promise(setImmediate);
      expect(clock.pending()).toBe(0);
      expect(asked(mock)).not.toContain("DELETE /video_1");
    },
  );

  test("while a poll is unanswered closes that connection", async () => {
    const { mock, clock, provider, call } = await startMedia();
    mock.respond({}, { beforeHeaders: new Promise(() => {}) });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("video", fox, { signal: caller.signal })));
    await clock.pass(2_000);
    const look = await mock.request(1);
    const reason = new Aborted("disconnected");
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await look.closed;
    expect(look.aborted).toBe(true);
  });

  test("does not wait for a removal that is never answered", async () => {
    const { mock, clock, provider, call } = await startMedia();
    mock.respond({ states: ["in_progress"] });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("video", fox, { signal: caller.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    mock.always({ beforeHeaders: new Promise(() => {}) });
    caller.abort(new Error("disconnected"));
    await answer;
    const removal = await mock.request(2);
    await clock.pass(5_000);
    await removal.closed;
    expect(removal.aborted).toBe(true);
  });
});
