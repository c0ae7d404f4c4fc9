// Pixels of images of the service, eight bits each of red, green, blue and opacity.
import { refusal } from "../api/media";

export async function pixels(source: string): Promise<ImageData> {
  const image = new Image();
  image.src = source;
  await image.decode().catch(async () => {
    throw new Error(await refusal(source));
  });
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  const context = canvas.getContext("2d", { willReadFrequently: true })!;
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

export interface Difference {
  image: ImageData;
  most: number; // the greatest difference of a colour, 0 to 255
  changed: number; // pixels that differ
}

// Absolute differences of colours, `gain` times as strong. Undefined: the images are of different sizes.
export function difference(a: ImageData, b: ImageData, gain: number): Difference | undefined {
  if (a.width !== b.width || a.height !== b.height) return undefined;
  const image = new ImageData(a.width, a.height);
  let [most, changed] = [0, 0];
  for (let i = 0; i < a.data.length; i += 4) {
    let here = 0;
    for (let c = 0; c < 4; c++) {
      const far = Math.abs(a.data[i + c]! - b.data[i + c]!);
      here = Math.max(here, far);
      if (c < 3) image.data[i + c] = far * gain;
    }
    image.data[i + 3] = 255;
    most = Math.max(most, here);
    changed += here ? 1 : 0;
  }
  return { image, most, changed };
}

// Colours of a pixel as text; grey ones by one number.
export function told(data: ImageData, x: number, y: number): string {
  const [r, g, b, a] = data.data.subarray(4 * (y * data.width + x)) as unknown as [number, number, number, number];
  const colour = r === g && g === b ? `${r}` : `${r} ${g} ${b}`;
  return `(${x}, ${y}) ${colour}${a === 255 ? "" : ` / ${a}`}`;
}
