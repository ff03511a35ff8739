export interface BitWriter {
  /** The lowest `count` bits of the value, at most 24. */
  bits(value: number, count: number): void;
  /** Exp-Golomb, of a whole number from 0. */
  ue(value: number): void;
  se(value: number): void;
  /** Fills up the byte with zeros. */
  align(): void;
  /** Whole bytes, where the writer is aligned. */
  raw(bytes: Uint8Array): void;
  /** All of it, after the stop bit. */
  end(): Buffer;
}

/** H.264's way of writing numbers (ITU-T H.264, 7.2 and 9.1). */
export function createBitWriter(): BitWriter {
  let bytes = Buffer.allocUnsafe(1024);
  let length = 0;
  let pending = 0;
  let pendingBits = 0;

  const reserve = (count: number) => {
    if (length + count > bytes.length) bytes = Buffer.concat([bytes], (length + count) * 2);
  };
  const writer: BitWriter = {
    bits(value, count) {
      pending = (pending << count) | (value & ((1 << count) - 1));
      pendingBits += count;
      reserve(4);
      while (pendingBits >= 8) {
        pendingBits -= 8;
        bytes[length++] = pending >>> pendingBits;
        pending &= (1 << pendingBits) - 1;
      }
    },
    ue(value) {
      const size = 32 - Math.clz32(value + 1);
      writer.bits(0, size - 1);
      writer.bits(value + 1, size);
    },
    se: (value) => writer.ue(value > 0 ? value * 2 - 1 : -value * 2),
    align() {
      if (pendingBits > 0) writer.bits(0, 8 - pendingBits);
    },
    raw(whole) {
      reserve(whole.length);
      bytes.set(whole, length);
      length += whole.length;
    },
    end() {
      writer.bits(1, 1);
      writer.align();
      return bytes.subarray(0, length);
    },
  };
  return writer;
}
