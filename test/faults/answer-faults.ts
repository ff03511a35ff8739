/** The faults of an area, and the tests that should catch them: paths, or prefixes of paths. */
export interface Area {
  /** Those of the area that `npm test` runs. */
  readonly tests: readonly string[];
  /** Those of the other suites, run for what the first ones miss. */
  readonly others?: readonly string[];
  /** Keyed by the name of the fault: a text that the sources contain once, and its replacement. */
  readonly faults: Readonly<Record<string, readonly [find: string, replace: string]>>;
}

/** Answers that are stored, and sent again. */
export const answerAreas: Readonly<Record<string, Area>> = {
  "responses in the background": {
    tests: ["test/integration/background-", "test/integration/stored-responses"],
    others: ["test/chaos/background-responses"],
    faults: {
      "a reader who misses events reads on": ["if (reader.last < first - 1) {", "if (reader.last < 0) {"],
      "a reader gets the events of an entry again": [
        "skipEvents(text, reader.last - first + 1)",
        "skipEvents(text, 0)",
      ],
      "a stored stream begins one event late": [
        "Math.max(0, after - firstWorkerEvent + 1)",
        "Math.max(0, after - firstWorkerEvent + 2)",
      ],
      "the log of an account has no limit": [
        "if own + size > most or all + size > mostInAll then",
        "if own + size > most then",
      ],
      "the size of an ended log is never given back": ['tonumber(redis.call("HGET", sizes, member) or "0")', "0"],
      "a response that was stored before its call failed is continued": [
        'if (job && job.status !== "completed") throw unknown(previousField);',
        "if (!found) throw unknown(previousField);",
      ],
      "the output of a cancelled response is lost": ["}, details.output);", "});"],
    },
  },
  "the response cache": {
    tests: ["test/unit/response-cache-", "test/integration/response-cache"],
    others: ["test/chaos/response-cache"],
    faults: {
      "two keys share an entry": ["[format, account, key, endpoint,", "[format, account, endpoint,"],
      "a stream has the answer of JSON": ["model, stream, framing, headers]", "model, framing, headers]"],
      "the order of a tool's parameters does not matter": ["if (!keepsOrder) names.sort();", "names.sort();"],
      "a deleted entry is sent": ['decoded.head.version !== current.join(" ")', "false"],
      "a call stores its answer after a deletion": [
        'local isCurrent = #ARGV > 4 and table.concat(versions, " ") == ARGV[5]',
        "local isCurrent = #ARGV > 4",
      ],
      "an answer that ended since the lookup is asked for again": [
        'if ARGV[6] == "0" and redis.call("EXISTS", KEYS[2]) == 1 then return {"stored"} end',
        "",
      ],
      "a leader's disconnect ends what others wait for": [
        "return cache.isFollowed(flight).catch(() => false);",
        "return false;",
      ],
      "followers of a dead leader wait for ever": [
        'return part(isLed || entries.length > 0 ? "running" : "failed");',
        'return part("running");',
      ],
      "followers of a stream miss its beginning": ["written, last: 0, silentPolls", "written, last: 1, silentPolls"],
      "a withheld answer is sent again": ["recording.isTransient || template.isWithheld()", "recording.isTransient"],
      "an answer that the balance made shorter is sent again": [
        "if (!text || recording.isTransient ||",
        "if (!text ||",
      ],
      "speech with gaps is stored": ["      call.recording?.end();\n      const job", "      const job"],
      "a leader who does not read delays its followers": [
        "isFollowed: () => (leaders.get(flight) ?? 0) > 0,",
        "isFollowed: () => false,",
      ],
      "a hit needs no right to its model": [
        "namedModels(deps, route, call, caller.models, await ownKeysFor(deps, caller));",
        "await ownKeysFor(deps, caller);",
      ],
      "a hit has the id of the first answer": [
        'replaceAll(idMark, requestId.replace(/^req_/, ""))',
        'replaceAll(idMark, "")',
      ],
    },
  },
};
