/**
 * Sessions of the dashboard (docs/api/dashboard.md), and one-time codes that begin one. Owns the collection `sessions`.
 *
 * A session stands for an API key or an operator's token and holds neither: every use checks that the key or token is still
 * valid. Its secret has 256 bits, so its stored hash needs no salt. The value that stands for an operator's token is sealed
 * with that secret, because tokens may be guessable, and a copy of the database must not help to guess one.
 *
 * `npm start` issues codes for the demo, and an operator for a key of an account.
 */
import { createHash, randomBytes } from "node:crypto";
import { type DocumentOf, openCollection } from "#platform/mongo/collection";
import { createCollections } from "#platform/mongo/migration-steps";
import type { ModuleSchema } from "#platform/mongo/migrations";
import type { Uses } from "#platform/uses";

export const sessionLifeMs = 12 * 3_600_000;
const codeLifeMs = 5 * 60_000;
/** Limits the sessions of one key or one operator. Beyond it the oldest ones end. */
const maxSessions = 100;

/** The owner of a session. `sealed` stands for an operator's token, and is sealed with the secret of the session or code. */
export type Subject =
  | { readonly kind: "account"; readonly account: string; readonly key: string }
  | { readonly kind: "operator"; readonly operator: string; readonly sealed: string };

export type Session = Subject & { readonly expiresAt: Date };

const definition = {
  _id: { type: String, required: true },
  owner: { type: String, required: true },
  account: { type: String },
  key: { type: String },
  operator: { type: String },
  sealed: { type: String },
  createdAt: { type: Date, required: true },
  expiresAt: { type: Date, required: true },
} as const;
type Stored = DocumentOf<typeof definition>;

export const sessionsSchema = {
  module: "sessions",
  unsharded: { sessions: "at most 100 for each key and operator, found by the hash of their secret" },
  migrations: [
    createCollections("sessions", [
      {
        collection: "sessions",
        indexes: [
          { key: { owner: 1, createdAt: -1, _id: -1 } },
          // The index only saves space: every read checks the time.
          { key: { expiresAt: 1 }, expireAfterSeconds: 0 },
        ],
      },
    ]),
  ],
} satisfies ModuleSchema;

/** A code cannot be used as a session, because their hashes differ. */
type Use = "session" | "code";
const secretBytes = 32;
const isSecret = (text: string) => /^[\w-]{43}$/.test(text);
const hashOf = (use: Use, secret: string) => createHash("sha256").update(`${use} ${secret}`).digest("base64url");

function toSession({ account, key, operator, sealed, expiresAt }: Stored): Session {
  if (account && key) return { kind: "account", account, key, expiresAt };
  if (operator && sealed) return { kind: "operator", operator, sealed, expiresAt };
  throw new TypeError("a session of nobody");
}

/** Receives the new secret, to seal with it. */
type SubjectOf = (secret: string) => Subject;

export function createSessions({ mongo, clock }: Uses<"mongo" | "clock">) {
  const { model } = openCollection<Stored>(mongo, "sessions", definition);

  async function insert(use: Use, lifeMs: number, subjectOf: SubjectOf) {
    const secret = randomBytes(secretBytes).toString("base64url");
    const { kind: _, ...fields } = subjectOf(secret);
    const owner = "key" in fields ? fields.key : `operator:${fields.operator}`;
    const createdAt = new Date(clock.now());
    const expiresAt = new Date(clock.now() + lifeMs);
    await model.create({ _id: hashOf(use, secret), owner, ...fields, createdAt, expiresAt });
    return { secret, owner, expiresAt };
  }

  /** Filters for a session or code that has not expired. The secret must be well-formed. */
  const at = (use: Use, secret: string) => ({ _id: hashOf(use, secret), expiresAt: { $gt: new Date(clock.now()) } });

  async function endOldest(owner: string): Promise<void> {
    const oldest = await model.find({ owner }, { _id: 1 }).sort({ createdAt: -1, _id: -1 }).skip(maxSessions).lean();
    if (oldest.length > 0) await model.deleteMany({ _id: { $in: oldest.map(({ _id }) => _id) } });
  }

  return {
    /** Always issues a new secret, to prevent session fixation. */
    async begin(subjectOf: SubjectOf): Promise<{ secret: string; expiresAt: Date }> {
      const { owner, ...begun } = await insert("session", sessionLifeMs, subjectOf);
      await endOldest(owner);
      return begun;
    },

    async find(secret: string): Promise<Session | undefined> {
      if (!isSecret(secret)) return undefined;
      const stored = await model.findOne(at("session", secret)).lean();
      return stored ? toSession(stored) : undefined;
    },

    async end(secret: string): Promise<void> {
      await model.deleteOne({ _id: hashOf("session", secret) });
    },

    /** Issues a code that begins one session within five minutes. */
    async issueCode(subjectOf: SubjectOf): Promise<{ code: string; expiresAt: Date }> {
      const { secret: code, expiresAt } = await insert("code", codeLifeMs, subjectOf);
      return { code, expiresAt };
    },

    /** Redeems a one-time code; returns its subject. */
    async redeemCode(code: string): Promise<Subject | undefined> {
      const stored = isSecret(code) ? await model.findOneAndDelete(at("code", code)).lean() : null;
      return stored ? toSession(stored) : undefined;
    },
  };
}

export type Sessions = ReturnType<typeof createSessions>;
