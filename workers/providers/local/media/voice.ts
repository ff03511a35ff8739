import { numbersFrom, seedOf } from "./seed.ts";

/** What the mouth does for a character: three resonances in Hz, how loud the voice is, and the noise of breath. */
interface Sound {
  readonly formants: readonly [number, number, number];
  readonly voiced: number;
  readonly noise: number;
}

export interface Voice {
  /** The next so many samples, 16-bit little-endian, while saying the character. */
  say(character: string, samples: number): Buffer;
}

export const sampleRate = 24_000;

/** Samples between two looks at where the mouth is going: 2 ms. */
const stepSamples = 48;

/**
 * A source-filter voice (Klatt, 1980): a buzz at the voice's pitch, and noise, through three resonators that glide from
 * one character's sound to the next. Pitch and length of the throat come from the name.
 */
export function createVoice(name: string): Voice {
  const number = numbersFrom(seedOf("voice", name));
  const pitch = 90 * 2.6 ** number();
  const throat = 0.92 + 0.24 * number();
  const resonators = [70, 110, 160].map(createResonator);
  const noise = numbersFrom(1);
  const now = { formants: [500, 1500, 2500], voiced: 0, noise: 0 };
  let time = 0;
  let phase = 0;
  let buzz = 0;
  let inMouth = 0;

  const step = (from: number, to: number) => from + (to - from) * 0.16;
  const move = (sound: Sound) => {
    for (const [index, resonator] of resonators.entries()) {
      now.formants[index] = step(now.formants[index] as number, sound.formants[index] as number);
      resonator.tune((now.formants[index] as number) * throat);
    }
    now.voiced = step(now.voiced, sound.voiced);
    now.noise = step(now.noise, sound.noise);
  };

  return {
    say(character, samples) {
      const sound = soundOf(character);
      const said = Buffer.allocUnsafe(samples * 2);
      for (let at = 0; at < samples; at++, time++) {
        if (time % stepSamples === 0) move(sound);
        const seconds = time / sampleRate;
        const melody = 1 + 0.09 * Math.sin(seconds * 4.3) + 0.015 * Math.sin(seconds * 33);
        phase = (phase + (pitch * melody) / sampleRate) % 1;
        // A sawtooth falling 6 dB an octave more, as the throat's own pulses do.
        buzz += (1 - 2 * phase - buzz) * 0.45;
        const breath = noise() - 0.5;
        let out = buzz * now.voiced + breath * now.noise * 0.2;
        for (const resonator of resonators) out = resonator.pass(out);
        // Lips let high sounds through better.
        const sent = out - 0.93 * inMouth + breath * now.noise;
        inMouth = out;
        said.writeInt16LE(Math.round(Math.tanh(sent * 0.9) * 24_000), at * 2);
      }
      return said;
    },
  };
}

/** Two poles: rings at its frequency. Passes what is far below as it is. */
function createResonator(bandwidth: number) {
  const radius = Math.exp((-Math.PI * bandwidth) / sampleRate);
  const second = -(radius ** 2);
  let first = 0;
  let last = 0;
  let beforeLast = 0;
  return {
    tune(frequency: number) {
      first = 2 * radius * Math.cos((2 * Math.PI * frequency) / sampleRate);
    },
    pass(input: number) {
      const out = (1 - first - second) * input + first * last + second * beforeLast;
      beforeLast = last;
      last = out;
      return out;
    },
  };
}

/** Peterson and Barney's means, 1952. */
const vowels: Readonly<Record<string, Sound["formants"]>> = {
  a: [730, 1090, 2440],
  e: [530, 1840, 2480],
  i: [270, 2290, 3010],
  o: [570, 840, 2410],
  u: [300, 870, 2240],
  y: [390, 1990, 2550],
};
const open = Object.values(vowels);

function soundOf(character: string): Sound {
  const letter = character.normalize("NFD").charAt(0).toLowerCase();
  const code = character.codePointAt(0) ?? 0;
  const other = open[code % open.length] ?? [500, 1500, 2500];
  const formants = vowels[letter];
  if (formants) return { formants, voiced: 1, noise: 0 };
  if (/[cfhkpqstx]/.test(letter)) return { formants: other, voiced: 0, noise: 0.12 };
  if (/[a-z]/.test(letter)) return { formants: [250, 900 + (code % 5) * 220, 2300], voiced: 0.4, noise: 0.01 };
  if (/[\p{L}\p{N}]/u.test(character)) return { formants: other, voiced: 0.9, noise: 0 };
  return { formants: other, voiced: 0, noise: 0 };
}
