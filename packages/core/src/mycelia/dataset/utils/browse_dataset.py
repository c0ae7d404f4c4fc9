"""Images with their boxes, labels and masks drawn on them."""

from __future__ import annotations

import importlib

import numpy as np


def _assert(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _checked_shapes(image, bboxes, labels, segm) -> None:
    _assert(
        isinstance(image, np.ndarray) and image.ndim == 3 and 3 in (image.shape[0], image.shape[2]),
        "image must be an array [H, W, 3] or [3, H, W]",
    )
    if bboxes is not None:
        boxed = isinstance(bboxes, np.ndarray) and bboxes.ndim == 2 and bboxes.shape[1] in (4, 5)
        _assert(boxed, "bboxes must be an array [N, 4] or [N, 5]")
        _assert(
            isinstance(labels, np.ndarray) and labels.shape == (len(bboxes), 1),
            "labels must be an array [N, 1], one for each of bboxes",
        )
    if segm is not None:
        _assert(isinstance(segm, np.ndarray) and segm.ndim == 3, "segm must be an array [M, H, W]")
        size = image.shape[:2] if image.shape[2] == 3 else image.shape[1:]
        _assert(segm.shape[1:] == size, "segm must be as high and wide as image")
        _assert(bboxes is None or len(bboxes) <= len(segm), "segm must have a mask for each of bboxes")


def _checked_styles(class_names, colors: dict, numbers: dict, flags: dict, texts: dict) -> None:
    _assert(isinstance(class_names, (tuple, list, dict)), "class_names must be a list, tuple or dict")
    for name, color in colors.items():
        _assert(isinstance(color, tuple) and len(color) == 3, f"{name} must be a tuple (blue, green, red)")
    for name, (value, types) in numbers.items():
        _assert(isinstance(value, types) and value >= 0, f"{name} must be a number of at least 0")
    for name, value in flags.items():
        _assert(isinstance(value, bool), f"{name} must be a bool")
    for name, value in texts.items():
        _assert(isinstance(value, str), f"{name} must be a str")


def imshow_det_bbox(
    image,
    bboxes,
    labels,
    segm=None,
    class_names=None,
    score_threshold=0,
    bbox_color=(0, 255, 0),
    text_color=(203, 192, 255),
    mask_color=(128, 0, 128),
    thickness=2,
    font_size=0.8,
    show=True,
    win_name="win",
    wait_time=2000,
    out_file=None,
):
    """Draw boxes (x, y, width, height, perhaps a score), their labels and masks; show the image in a window
    (`show`) and write it to `out_file`.

    Shapes: image uint8 [H, W, 3] or [3, H, W] in RGB, bboxes [N, 4] or [N, 5], labels [N, 1], segm [M, H, W]
    -> uint8 [H, W, 3] in BGR. Colours are (blue, green, red). Errors: ImportError without OpenCV;
    AssertionError for arguments that do not fit.
    """
    try:
        cv2 = importlib.import_module("cv2")
    except ImportError:
        raise ImportError("imshow_det_bbox draws with OpenCV: pip install opencv-python") from None
    _checked_shapes(image, bboxes, labels, segm)
    _checked_styles(
        class_names,
        {"bbox_color": bbox_color, "text_color": text_color, "mask_color": mask_color},
        {
            "thickness": (thickness, int),
            "font_size": (font_size, (int, float)),
            "wait_time": (wait_time, int),
        },
        {"show": show},
        {"win_name": win_name} if out_file is None else {"win_name": win_name, "out_file": out_file},
    )
    scored = bboxes is not None and bboxes.shape[1] == 5
    _assert(score_threshold <= 0 or scored, "score_threshold needs bboxes with scores")
    _assert(show or out_file is not None, "without show there must be an out_file")
    if image.shape[0] == 3:
        image = image.transpose(1, 2, 0)
    drawn = cv2.cvtColor(np.ascontiguousarray(image), cv2.COLOR_RGB2BGR)
    boxes = range(0 if bboxes is None else len(bboxes))
    for i in boxes:
        x, y, width, height = (float(v) for v in bboxes[i][:4])
        if scored and bboxes[i][4] < score_threshold:
            continue
        cv2.rectangle(drawn, (int(x), int(y)), (int(x + width), int(y + height)), bbox_color, thickness)
        label = _name(class_names, labels[i][0]) + (f"|{bboxes[i][4]:.02f}" if scored else "")
        place = (int(x), int(y + height))
        cv2.putText(drawn, label, place, cv2.FONT_HERSHEY_SIMPLEX, font_size, text_color, thickness)
        if segm is not None:
            _shade(drawn, segm[i], mask_color)
    if bboxes is None:
        for mask in segm if segm is not None else ():
            _shade(drawn, mask, mask_color)
    if show:
        cv2.imshow(win_name, drawn)
        if cv2.waitKey(wait_time) == 27:  # Escape
            raise SystemExit
    if out_file:
        cv2.imwrite(out_file, drawn)
    return drawn


def _name(class_names, label) -> str:
    try:
        return str(class_names[label])
    except (IndexError, KeyError):
        return f"class {label}"


def _shade(image: np.ndarray, mask: np.ndarray, color: tuple) -> None:
    inside = mask.astype(bool)
    image[inside] = image[inside] * 0.5 + np.asarray(color) * 0.5
