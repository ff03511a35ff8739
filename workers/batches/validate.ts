import {
  batchEndpoint,
  type FileLine,
  type LineProblem,
  LineRefused,
  maxLineBytes,
  maxLines,
  parseLine,
  readLines,
  type StoredBatch,
  type Validated,
} from "#batches";
import type { Model } from "#catalog";
import { ServiceError } from "#errors";
import type { ParsedCall } from "#formats";
import { allowsModel, type KeyStore } from "#key-records";
import type { Money } from "#money";
import { randomBase62 } from "#platform/ids";
import type { Uses } from "#platform/uses";
import type { RunCallDeps } from "../run-call/context.ts";

const maxProblems = 100;
const renewMs = 5_000;
/** Other work of the process gets its turn after this much of a file. */
const turnBytes = 256 * 1024;

export interface ValidationDeps extends Uses<"clock" | "log"> {
  readonly catalog: RunCallDeps["catalog"];
  readonly batches: RunCallDeps["batches"];
  readonly files: RunCallDeps["files"];
  readonly money: Pick<Money, "account">;
  readonly keyStore: KeyStore;
  readonly ending: AbortSignal;
}

/** A file that is refused as a whole, or whose claim is lost. */
class Stopped extends Error {
  override readonly name = "Stopped";
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

interface Terms {
  readonly tier: "standard" | "elite";
  /** The models that the key may call. Null stands for all. */
  readonly models: readonly string[] | null;
}

/** Validates the files of new batches, one after the other. Nothing is held or charged before it has ended. */
export async function validateBatches(deps: ValidationDeps): Promise<void> {
  const { batches, ending, log } = deps;
  await batches.recordDueEvents();
  const by = `wrk_${randomBase62(20)}`;
  while (!ending.aborted) {
    const batch = await batches.claim(by, ["validating"]);
    if (!batch) return;
    try {
      await validate(deps, batch);
    } catch (error) {
      if (!(error instanceof Stopped)) log.warn({ err: error, batch: batch._id }, "a batch could not be validated yet");
    }
  }
}

async function validate(deps: ValidationDeps, claimed: StoredBatch): Promise<void> {
  const { batches, files, keyStore, money, clock, ending } = deps;
  const { account, inputFile } = claimed;
  const key = await keyStore.find(claimed.key);
  const owner = await money.account(account);
  const terms: Terms = { tier: owner?.tier ?? "standard", models: key?.models ?? null };
  const found = createFindings(deps, claimed, terms);
  const fail = (problems: readonly LineProblem[]) => batches.end(claimed, "failed", { problems });
  try {
    const file = await files.batchFiles.find(account, inputFile, "input_file_id");
    let renewedAt = clock.now();
    let bytes = 0;
    for await (const line of readLines(files.batchFiles.open(file), { line: 0, byte: 0 }, maxLineBytes)) {
      found.add(line);
      if (found.isOver()) break;
      bytes += line.bytes;
      if (bytes < turnBytes) continue;
      bytes = 0;
      await nextTurn();
      ending.throwIfAborted();
      if (clock.now() - renewedAt < renewMs) continue;
      renewedAt = clock.now();
      if (!(await batches.renew(claimed))) throw new Stopped("another worker validates the batch");
    }
  } catch (error) {
    if (!(error instanceof ServiceError) || error.status >= 500) throw error;
    const { code, message, param = null } = error;
    return fail([{ code, message, param, line: null }]);
  }
  const { problems, ...validated } = found.result();
  await (problems.length > 0 ? fail(problems) : batches.accept(claimed, validated));
}

/** Gathers what a file contains, and what is wrong with it. */
function createFindings({ catalog }: ValidationDeps, batch: StoredBatch, { tier, models }: Terms) {
  const problems: LineProblem[] = [];
  const customIds = new Map<string, number>();
  const named = new Set<string>();
  const { format } = batchEndpoint(batch.endpoint);
  let lines = 0;
  let estimateNanoUsd = 0n;

  /** The models that may run the call. Throws `LineRefused` if one does not exist, or the key may not call it. */
  function modelsOf(call: ParsedCall): readonly Model[] {
    const names = call.models?.map(({ name }) => name) ?? [call.model];
    return names.flatMap((name) => {
      const model = catalog.find(name) ?? (format === "chat" ? undefined : catalog.named(name));
      if (!model && name !== "") throw new LineRefused("model_not_found", `There is no model '${name}'.`, "body.model");
      if (model && !allowsModel(models, model.id))
        throw new LineRefused("model_not_allowed", `The API key may not call the model '${model.id}'.`, "body.model");
      named.add(model?.id ?? "");
      return model ?? [];
    });
  }

  function boundWith(model: Model, { input: given, size }: ParsedCall): bigint {
    if (!given) return model.media ? 0n : catalog.inBatch(model, catalog.bound(model, size, tier).maxNanoUsd);
    const input = catalog.checkInput(model, given);
    const { maxNanoUsd } = catalog.boundOfUnits(model, input, catalog.units(model, input, new Map()), tier);
    return catalog.inBatch(model, maxNanoUsd);
  }

  /** That of the dearest model, which is also what is held. */
  const boundOf = (call: ParsedCall): bigint =>
    modelsOf(call).reduce((most, model) => {
      const bound = boundWith(model, call);
      return bound > most ? bound : most;
    }, 0n);

  function check(line: FileLine): void {
    const { customId, call } = parseLine(batch, line.content);
    const before = customIds.get(customId);
    if (before !== undefined)
      throw new LineRefused("duplicate_custom_id", `custom_id is that of line ${before + 1}, too.`, "custom_id");
    customIds.set(customId, line.line);
    try {
      estimateNanoUsd += boundOf(call);
    } catch (error) {
      if (!(error instanceof ServiceError || error instanceof LineRefused)) throw error;
      // The line gets the error of its admission as its result: a message batch cannot fail as a whole.
      if (batch.kind === "anthropic") return;
      if (error instanceof LineRefused) throw error;
      throw new LineRefused(error.code, error.message, `body.${error.param ?? "model"}`);
    }
  }

  return {
    add(line: FileLine): void {
      lines = line.line + 1;
      if (lines > maxLines) {
        problems.push({
          code: "too_many_tasks",
          message: `A batch has at most ${maxLines} lines.`,
          param: null,
          line: lines,
        });
        return;
      }
      try {
        check(line);
      } catch (error) {
        if (!(error instanceof LineRefused)) throw error;
        problems.push({ ...error.problem, line: lines });
      }
    },
    isOver: () => problems.length >= maxProblems || lines > maxLines,
    result(): Validated & { readonly problems: readonly LineProblem[] } {
      const empty = { code: "empty_file", message: "The file has no line.", param: "input_file_id", line: null };
      const [first] = named;
      return {
        problems: lines === 0 ? [empty] : problems,
        lines,
        estimateNanoUsd,
        model: named.size === 1 && first !== "" ? first : undefined,
      };
    },
  };
}
