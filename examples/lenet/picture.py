"""A grid of digits with predictions: for the terminal and as a PNG."""

import numpy as np


def terminal_grid(images: np.ndarray, predicted, actual, columns: int = 8) -> str:
    """Digits as half-block characters, two pixels a character;
    wrong predictions are marked with the true digit.

    `images`: uint8 [n, 28, 28].
    """
    blocks = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
    lines = []
    for start in range(0, len(images), columns):
        part = slice(start, start + columns)
        small = [image[2:26, 2:26][::2, ::2] > 90 for image in images[part]]
        for row in range(0, small[0].shape[0], 2):
            lines.append(
                "  ".join(
                    "".join(blocks[bool(a), bool(b)] for a, b in zip(s[row], s[row + 1])) for s in small
                )
            )
        names = [f"{p}" if p == a else f"{p} (is {a})" for p, a in zip(predicted[part], actual[part])]
        lines.append("  ".join(name.center(12) for name in names))
        lines.append("")
    return "\n".join(lines)


def save_grid(path, images: np.ndarray, predicted, actual, columns: int = 8, scale: int = 2) -> None:
    """The same as a PNG file: green captions are right, red ones wrong."""
    from PIL import Image, ImageDraw

    cell, caption = 28 * scale, 16
    rows = -(-len(images) // columns)
    picture = Image.new("RGB", (columns * (cell + 8) + 8, rows * (cell + caption + 8) + 8), "white")
    draw = ImageDraw.Draw(picture)
    for i, image in enumerate(images):
        x, y = 8 + i % columns * (cell + 8), 8 + i // columns * (cell + caption + 8)
        picture.paste(Image.fromarray(255 - image).resize((cell, cell), Image.Resampling.NEAREST), (x, y))
        right = predicted[i] == actual[i]
        text = f"{predicted[i]}" if right else f"{predicted[i]}, is {actual[i]}"
        draw.text(
            (x + cell // 2, y + cell + caption // 2),
            text,
            fill="#15803d" if right else "#b91c1c",
            anchor="mm",
        )
    picture.save(path)
