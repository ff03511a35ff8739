import { describe, expect, test } from "vitest";
import { noCapacity } from "../../shared/errors.ts";
import { type AbortCause, Aborted } from "../../workers/running.ts";
import { mockRequestId } from "../support/mock-fal.ts";
import { mockError } from "../support/mock-openai.ts";
import { mockMp4 } from "../support/mock-openai-media.ts";
import type { MockProvider, ProviderAnswer } from "../support/mock-provider.ts";
import { mockId } from "../support/mock-replicate.ts";
import { startFal, startOpenai, startProvider, startReplicate } from "../support/provider-setup.ts";
import { errorOf, gate } from "../support/upstreams-setup.ts";

interface Job {
  readonly id: string;
  /** The script of a job with these states, one for each poll. */
  readonly script: (...states: string[]) => object;
  readonly running: string;
  readonly ended: string;
  readonly submit: string;
  readonly poll: string;
  /** The requests for the result, the last of which is for its file. */
  readonly fetch: readonly string[];
  readonly cancel: readonly string[];
}

const falRequest = `/acme/model/requests/${mockRequestId}`;
const jobs = {
  openai: {
    id: "video_1",
    script: (...states) => ({ states }),
    running: "in_progress",
    ended: "completed",
    submit: "POST /v1/videos",
    poll: "GET /v1/videos/video_1",
    fetch: ["GET /v1/videos/video_1/content"],
    cancel: ["DELETE /v1/videos/video_1"],
  },
  gemini: {
    id: "v1_mock1",
    script: (...states) => ({ states }),
    running: "in_progress",
    ended: "completed",
    submit: "POST /v1beta/interactions",
    poll: "GET /v1beta/interactions/v1_mock1",
    fetch: ["GET /v1beta/files/video1:download?alt=media"],
    cancel: ["POST /v1beta/interactions/v1_mock1/cancel", "DELETE /v1beta/interactions/v1_mock1"],
  },
  replicate: {
    id: mockId,
    script: (...states) => ({ states: ["starting", ...states], output: "0.mp4" }),
    running: "processing",
    ended: "succeeded",
    submit: "POST /v1/models/acme/model/predictions",
    poll: `GET /v1/predictions/${mockId}`,
    fetch: ["GET /v1/out/0.mp4"],
    cancel: [`POST /v1/predictions/${mockId}/cancel`],
  },
  fal: {
    id: `acme/model/text-to-image/requests/${mockRequestId}`,
    script: (...states) => ({ states, output: { video: { url: "0.mp4" } } }),
    running: "IN_PROGRESS",
    ended: "COMPLETED",
    submit: "POST /acme/model/text-to-image",
    poll: `GET ${falRequest}/status?logs=0`,
    fetch: [`GET ${falRequest}`, "GET /out/0.mp4"],
    cancel: [`PUT ${falRequest}/cancel`],
  },
} as const satisfies Record<string, Job>;
type Name = keyof typeof jobs;

const fox = { prompt: "a fox", duration: 8 };
const asked = ({ requests }: Pick<MockProvider, "requests">) => requests.map(({ method, path }) => `${method} ${path}`);
const never = new Promise<never>(() => {});
const video = { headers: { "content-type": "video/mp4" }, done: false } as const;
const eight = { usage: { second: 8 } };

const bar = " 12%|█▏        | 6/50 [00:00<00:03]\r 43%|████▎     | 21/50 [00:01<00:02]\n";

test.each([
  ["openai", {}, [40]],
  ["replicate", { logs: `Using seed: 34149\n${bar}Encoding 7% of it\n` }, [43]],
  ["replicate", { logs: `${bar}${"x".repeat(5_000)}` }, [undefined]],
  ["gemini", {}, []],
  ["fal", {}, []],
] as const)("the progress that %s tells is reported while the job runs: %#", async (name, more, reported) => {
  const { script, running, ended } = jobs[name] as Job;
  const { mock, clock, provider, call } = await startProvider(name);
  mock.respond(Object.assign<object, object>(script(running, ended), more));
  const told: unknown[] = [];
  const making = provider.generate(call("video", fox, { reportProgress: (percent) => void told.push(percent) }));
  await clock.pass(2_000, 3_000);
  await making;
  expect(told).toEqual(reported);
});

describe.each(Object.keys(jobs) as Name[])("a job of %s", (name) => {
  const job: Job = jobs[name];
  const { poll, fetch, script, running, ended } = job;
  /** The answers until the file itself is fetched: the script of the job, and the usual ones. */
  const untilFile: readonly ProviderAnswer[] = [script(ended), {}, ...fetch.slice(1).map(() => ({}))];

  test("is submitted once, its id is stored, it is polled, and its file is stored unchanged", async () => {
    const { mock, clock, provider, stored, remembered, call } = await startProvider(name);
    mock.respond(script(running, ended));
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 3_000);
    expect(await made).toMatchObject(eight);
    expect(asked(mock)).toEqual([job.submit, poll, poll, ...fetch]);
    expect(remembered).toEqual([job.id]);
    expect(stored.map(({ bytes }) => bytes.equals(mockMp4))).toEqual([true]);
  });

  test("is continued by another delivery, which polls at once and submits nothing", async () => {
    const { mock, clock, provider, stored, remembered, call } = await startProvider(name);
    mock.respond(script(running, ended));
    const first = new AbortController();
    const abandoned = errorOf(provider.generate(call("video", fox, { signal: first.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    first.abort(new Aborted("shutdown"));
    await abandoned;
    const remember = () => Promise.reject(new Error("again"));
    const more = { job: remembered[0], remember, model: "renamed/since" };
    expect(await provider.generate(call("video", fox, more))).toMatchObject(eight);
    expect(asked(mock)).toEqual([job.submit, poll, poll, ...fetch]);
    expect(stored).toHaveLength(1);
  });

  test("does not fail with a poll", async () => {
    const { mock, clock, provider, call } = await startProvider(name);
    mock.respond(script(ended), mockError(500, "oops"), { cutAfter: -1 }, { body: { id: "a", status: "sleeping" } });
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 3_000, 4_500, 6_750);
    expect(await made).toMatchObject(eight);
  });

  test("is downloaded again if that breaks off", async () => {
    const { mock, clock, provider, stored, call } = await startProvider(name);
    const half = { ...video, events: ["one", "two"], cutAfter: 1 };
    mock.respond(...untilFile, half, { body: { error: { message: "not yet" } } });
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 2_000, 2_000);
    await made;
    expect(stored.map(({ bytes }) => bytes.equals(mockMp4))).toEqual([true]);
    expect(asked(mock).slice(-3)).toEqual(Array(3).fill(fetch.at(-1)));
  });

  test("fails if its download does three times", async () => {
    const { mock, clock, provider, stored, call } = await startProvider(name);
    const no = mockError(500, "no");
    mock.respond(...untilFile, no, no, no);
    const failure = errorOf(provider.generate(call("video", fox)));
    await clock.pass(2_000, 2_000, 2_000);
    expect(await failure).toMatchObject({ kind: "unavailable" });
    expect(stored).toEqual([]);
  });

  test("is not downloaded again if storage fails", async () => {
    const { mock, clock, provider, call } = await startProvider(name);
    const error = noCapacity("Storage is unavailable.");
    mock.respond(script(ended));
    const failure = errorOf(provider.generate(call("video", fox, { store: () => Promise.reject(error) })));
    await clock.pass(2_000);
    expect(await failure).toBe(error);
    expect(asked(mock).slice(0, 2 + fetch.length)).toEqual([job.submit, poll, ...fetch]);
    expect(asked(mock).filter((each) => each === fetch.at(-1))).toHaveLength(1);
  });

  /** A caller disconnects while a poll is unanswered. */
  const leave = async (cause: AbortCause) => {
    const { mock, clock, provider, stored, call } = await startProvider(name);
    mock.respond(script(running), { beforeHeaders: never });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("video", fox, { signal: caller.signal })));
    await clock.pass(2_000);
    const look = await mock.request(1);
    const reason = new Aborted(cause);
    caller.abort(reason);
    expect(await answer).toBe(reason);
    await look.closed;
    expect([look.aborted, stored]).toEqual([true, []]);
    return { mock, clock };
  };

  test.each(["disconnected", "gone", "deadline"] as const)(
    "is canceled and removed if its call is aborted (%s), which rejects at once",
    async (cause) => {
      const { mock } = await leave(cause);
      await (await mock.request(1 + job.cancel.length)).closed;
      expect(asked(mock)).toEqual([job.submit, poll, ...job.cancel]);
    },
  );

  test.each(["lost", "shutdown"] as const)("remains if another worker goes on with it (%s)", async (cause) => {
    const { mock, clock } = await leave(cause);
    // Any further request has been sent by then.
    await new Promise(setImmediate);
    expect(clock.pending()).toBe(0);
    expect(asked(mock)).toEqual([job.submit, poll]);
  });
});

describe("polls", () => {
  const gets = (mock: Pick<MockProvider, "requests">) => mock.requests.filter(({ method }) => method === "GET");

  test("have growing pauses, up to ten seconds", async () => {
    const { mock, clock, provider, call } = await startOpenai();
    mock.respond({ states: ["queued", "queued", ...Array<string>(4).fill("in_progress"), "completed"] });
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 3_000, 4_500, 6_750, 10_000, 10_000, 10_000);
    await made;
    expect(mock.requests).toHaveLength(9);
  });

  test("may fail with any error, stay unanswered for 30 s, and are put off as the provider says", async () => {
    const { mock, clock, provider, call } = await startOpenai();
    const later = mockError(429, "Slow down", { headers: { "retry-after": "20" } });
    mock.respond({}, { body: "<html>" }, mockError(404, "not yet"), { beforeHeaders: never }, later);
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 3_000, 4_500);
    await mock.request(3);
    await clock.pass(30_000, 6_750, 20_000);
    expect(await made).toMatchObject(eight);
  });

  test("may often say that there is no job, if others between them succeed", async () => {
    const { mock, clock, provider, call } = await startOpenai();
    const [no, yes] = [mockError(404, "no"), { body: { id: "video_1", status: "in_progress" } }];
    mock.respond({}, no, no, yes, no, no, yes, no);
    const made = provider.generate(call("video", fox));
    await clock.pass(2_000, 3_000, 4_500, 6_750, 10_000, 10_000, 10_000, 10_000);
    expect(await made).toMatchObject(eight);
  });

  test("that fail for five minutes fail the job, and it is removed at the provider", async () => {
    const { mock, clock, provider, call } = await startOpenai();
    mock.respond({ states: ["in_progress"] });
    const failure = errorOf(provider.generate(call("video", fox)));
    await clock.pass(2_000);
    mock.always(mockError(503, "down"));
    await clock.pass(3_000, 4_500, 6_750, ...Array.from({ length: 29 }, () => 10_000));
    expect(await failure).toMatchObject({ kind: "unavailable", status: 503 });
    expect(gets(mock)).toHaveLength(33);
    await mock.request(34);
    expect(asked(mock).at(-1)).toBe("DELETE /v1/videos/video_1");
  });

  test.each([404, 401])("that say %i three times are believed", async (status) => {
    const { mock, clock, provider, call } = await startOpenai();
    const no = mockError(status, "no");
    mock.respond({}, no, no, no);
    const failure = errorOf(provider.generate(call("video", fox)));
    await clock.pass(2_000, 3_000, 4_500);
    expect(await failure).toMatchObject({ kind: "misconfigured", status });
  });

  test("of a job that Google no longer knows are not the caller's fault", async () => {
    const { clock, provider, call } = await startProvider("gemini");
    const failure = errorOf(provider.generate(call("video", fox, { job: "v1_gone" })));
    await clock.pass(2_000, 3_000);
    expect(await failure).toMatchObject({ kind: "misconfigured" });
  });

  test("do not begin before the job's id is stored", async () => {
    const { mock, clock, provider, call } = await startOpenai();
    const [written, begun] = [gate(), gate()];
    const remember = () => {
      begun.resolve();
      return written.promise;
    };
    const made = provider.generate(call("video", fox, { remember }));
    await begun.promise;
    clock.advance(60_000);
    await new Promise(setImmediate);
    expect(mock.requests).toHaveLength(1);
    written.resolve();
    await clock.pass(2_000);
    await made;
  });

  test("a removal that is never answered is given up after five seconds", async () => {
    const { mock, clock, provider, call } = await startOpenai();
    mock.respond({ states: ["in_progress"] });
    const caller = new AbortController();
    const answer = errorOf(provider.generate(call("video", fox, { signal: caller.signal })));
    await clock.pass(2_000);
    await (await mock.request(1)).closed;
    mock.always({ beforeHeaders: never });
    caller.abort(new Error("disconnected"));
    await answer;
    const removal = await mock.request(2);
    await clock.pass(5_000);
    await removal.closed;
    expect(removal.aborted).toBe(true);
  });
});

describe("a caller who disconnects, but whose call is not aborted", () => {
  test.each([
    ["replicate", startReplicate, "starting", 0],
    ["replicate", startReplicate, "processing", 1],
    ["fal", startFal, "IN_QUEUE", 0],
    ["fal", startFal, "IN_PROGRESS", 1],
  ] as const)(
    "from a job of %s: work not begun (%#) is canceled and not billed, other work is delivered",
    async (...row) => {
      const [name, start, state, billed] = row;
      const job = jobs[name];
      const { mock, clock, provider, stored, call } = await start();
      mock.respond(job.script(state, state, job.ended));
      const caller = new AbortController();
      const answer = provider.generate(call("video", fox, { disconnected: caller.signal }));
      const end = answer.catch((error: unknown) => error);
      await clock.pass(2_000);
      await clock.begun(3_000);
      const reason = new Aborted("disconnected");
      caller.abort(reason);
      if (billed > 0) await clock.pass(4_500);
      expect(await end).toEqual(billed > 0 ? { output: {}, ...eight } : reason);
      expect([mock.billed(), stored.length]).toEqual([billed, billed]);
      const rest = billed > 0 ? [job.poll, ...job.fetch] : job.cancel;
      expect(asked(mock)).toEqual([job.submit, job.poll, job.poll, ...rest]);
    },
  );

  test("before the submission: nothing is submitted", async () => {
    const { mock, provider, call } = await startFal();
    const reason = new Aborted("disconnected");
    const asking = call("video", fox, { disconnected: AbortSignal.abort(reason) });
    expect(await errorOf(provider.generate(asking))).toBe(reason);
    expect(mock.requests).toEqual([]);
  });
});
