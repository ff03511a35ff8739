import { numbersFrom } from "./seed.ts";

export interface Picture {
  readonly width: number;
  readonly height: number;
  /** Writes one row, 3 bytes (red, green, blue) a pixel. */
  row(y: number, into: Uint8Array): void;
}

type Color = readonly [number, number, number];

interface Disc {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
  /** How wide its edge is. */
  readonly soft: number;
  readonly color: Color;
  readonly opacity: number;
}

/** Discs with soft edges before a gradient of four colors. The same seed looks the same in every size. */
export function pictureOf(seed: number, width: number, height: number): Picture {
  const number = numbersFrom(seed);
  const between = (least: number, most: number) => least + (most - least) * number();
  const hue = number();
  const color = (spread: number, lightness: number): Color =>
    colorOf(hue + between(-spread, spread), between(0.45, 0.85), lightness + between(-0.12, 0.12));
  const corners = [color(0.08, 0.3), color(0.15, 0.4), color(0.15, 0.5), color(0.08, 0.65)] as const;
  const unit = Math.min(width, height);
  const discs = Array.from({ length: 3 + Math.floor(number() * 4) }, (): Disc => {
    const radius = between(0.08, 0.4) * unit;
    return {
      x: between(0.05, 0.95) * width,
      y: between(0.05, 0.95) * height,
      radius,
      soft: Math.max(1.5, radius * (number() < 0.5 ? 0.02 : between(0.2, 0.9))),
      color: color(0.5, 0.55),
      opacity: between(0.35, 0.9),
    };
  });

  return {
    width,
    height,
    row(y, into) {
      const down = (y + 0.5) / height;
      for (let channel = 0; channel < 3; channel++) {
        const at = (corner: 0 | 1 | 2 | 3) => corners[corner][channel] as number;
        const left = at(0) + (at(2) - at(0)) * down;
        const right = at(1) + (at(3) - at(1)) * down;
        const step = (right - left) / width;
        for (let x = 0, value = left + step / 2; x < width; x++, value += step) into[x * 3 + channel] = value;
      }
      for (const disc of discs) blend(disc, y + 0.5, width, into);
    },
  };
}

function blend(
  { x: middle, y: height, radius, soft, color, opacity }: Disc,
  y: number,
  width: number,
  into: Uint8Array,
) {
  const up = (y - height) ** 2;
  const half = Math.sqrt(radius ** 2 - up);
  if (Number.isNaN(half)) return;
  const [red, green, blue] = color;
  const end = Math.min(width, Math.ceil(middle + half));
  for (let x = Math.max(0, Math.floor(middle - half)); x < end; x++) {
    const inside = radius - Math.sqrt((x + 0.5 - middle) ** 2 + up);
    if (inside <= 0) continue;
    const share = opacity * Math.min(1, inside / soft);
    const at = x * 3;
    into[at] = mix(into[at] as number, red, share);
    into[at + 1] = mix(into[at + 1] as number, green, share);
    into[at + 2] = mix(into[at + 2] as number, blue, share);
  }
}

const mix = (from: number, to: number, share: number) => from + (to - from) * share;

/** Hue, saturation and lightness, each of 1, as red, green and blue of 255. */
function colorOf(hue: number, saturation: number, lightness: number): Color {
  const channel = (offset: number) => {
    const at = (offset + hue * 12 + 24) % 12;
    const reach = saturation * Math.min(lightness, 1 - lightness);
    return 255 * (lightness - reach * Math.max(-1, Math.min(at - 3, 9 - at, 1)));
  };
  return [channel(0), channel(8), channel(4)];
}
