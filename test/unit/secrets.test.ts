import { expect, test } from "vitest";
import { notConfigured } from "#errors";
import { ConfigError } from "#platform/config-error";
import { createSecrets, newPrivateKey, publicKeyOf, suite } from "../../shared/secrets/index.ts";

const hex = (text: string) => Buffer.from(text, "hex");
const [oldKey, newKey] = [await newPrivateKey(), await newPrivateKey()];
const sealer = (privateKey: string) => createSecrets({ SECRETS_PUBLIC_KEY: publicKeyOf(privateKey) });
const opener = (keys: string) => createSecrets({ SECRETS_PRIVATE_KEYS: keys });

/**
 * The vector of RFC 9180 for mode 0, KEM 0x0020, KDF 0x0001, AEAD 0x0002, sequence number 0:
 * https://github.com/cfrg/draft-irtf-cfrg-hpke/blob/5f503c564da00b0687b3de75f1dfbdfc4079ad31/test-vectors.json
 */
test("the suite opens and seals the RFC's test vector", async () => {
  const vector = {
    info: hex("4f6465206f6e2061204772656369616e2055726e"),
    ikmE: hex("2cd7c601cefb3d42a62b04b7a9041494c06c7843818e0ce28a8f704ae7ab20f9"),
    skRm: hex("497b4502664cfea5d5af0b39934dac72242a74f8480451e1aee7d6a53320333d"),
    pkRm: hex("430f4b9859665145a6b1ba274024487bd66f03a2dd577d7753c68d7d7d00c00c"),
    enc: hex("6c93e09869df3402d7bf231bf540fadd35cd56be14f97178f0954db94b7fc256"),
    aad: Buffer.from("Count-0"),
    pt: Buffer.from("Beauty is truth, truth beauty"),
    ct: hex("e5d84cd531cfb583096e7cfa9641bd3079cf3a91cda813c52deb5f512be9931980a41de125a925cdad859d5b7a"),
  };
  const { info, enc, aad, pt, ct } = vector;
  expect(publicKeyOf(vector.skRm.toString("base64"))).toBe(vector.pkRm.toString("base64"));
  const recipientKey = await suite.kem.deserializePrivateKey(vector.skRm);
  expect(Buffer.from(await suite.open({ recipientKey, enc, info }, ct, aad))).toEqual(pt);
  const recipientPublicKey = await suite.kem.deserializePublicKey(vector.pkRm);
  const sealed = await suite.seal(
    { recipientPublicKey, info, ekm: await suite.kem.deriveKeyPair(vector.ikmE) },
    pt,
    aad,
  );
  expect([Buffer.from(sealed.enc), Buffer.from(sealed.ct)]).toEqual([enc, ct]);
});

test("a value opens for its account and object alone, and not when a character was changed", async () => {
  const sealed = await sealer(newKey).seal("acct_1", "we_1", "whsec_1 \u{1f511}");
  const workers = opener(newKey);
  expect(await workers.open("acct_1", "we_1", sealed)).toBe("whsec_1 \u{1f511}");
  expect(sealed).not.toBe(await sealer(newKey).seal("acct_1", "we_1", "whsec_1 \u{1f511}"));
  const other = "The secret of we_1 is damaged, or belongs to another object.";
  await expect(workers.open("acct_2", "we_1", sealed)).rejects.toThrow(other);
  await expect(workers.open("acct_1", "we_2", sealed)).rejects.toThrow("damaged");
  for (const at of [15, 60, sealed.length - 2]) {
    const changed = `${sealed.slice(0, at)}${sealed[at] === "A" ? "B" : "A"}${sealed.slice(at + 1)}`;
    await expect(workers.open("acct_1", "we_1", changed)).rejects.toThrow("damaged");
  }
  for (const malformed of ["", "whsec_1", "2.aaaaaaaa.aaaa", `${sealed}.a`])
    await expect(workers.open("acct_1", "we_1", malformed)).rejects.toThrow("No key of SECRETS_PRIVATE_KEYS");
});

test("during a rotation workers open what either key sealed, and afterwards only the new key's", async () => {
  const values = await Promise.all([oldKey, newKey].map((key) => sealer(key).seal("acct_1", "we_1", "whsec_1")));
  const opens = (keys: string) =>
    Promise.all(
      values.map((value) =>
        opener(keys)
          .open("acct_1", "we_1", value)
          .then(Boolean, () => false),
      ),
    );
  expect(await opens(`${newKey},${oldKey}`)).toEqual([true, true]);
  expect(await opens(newKey)).toEqual([false, true]);
  expect(() => createSecrets({ SECRETS_PUBLIC_KEY: publicKeyOf(oldKey), SECRETS_PRIVATE_KEYS: newKey })).toThrow(
    ConfigError,
  );
});

test("a process without the public key cannot seal, and says why", async () => {
  await expect(opener(newKey).seal("acct_1", "we_1", "whsec_1")).rejects.toThrow(
    notConfigured("SECRETS_PUBLIC_KEY is not set, so no secrets can be stored."),
  );
  expect(await sealer(newKey).open("acct_1", "we_1", "1.aaaaaaaa.aaaa").catch(String)).toContain("No key of");
});
