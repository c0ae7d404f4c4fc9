"""Calls of sources upon the files of source_files.py, and what they give, as plain data to compare."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

DECODED = {"decode": True}


def _each(name: str, path: str, argument: str, values, /, **more) -> list:
    return [(name, path, {argument: value, **more}) for value in values]


CASES = [
    # ---- detection
    ("VOCDataset", "voc", {}),
    ("VOCDataset", "voc", {"decode": True, "extra_metadata": True}),
    ("VOCDataset", "voc", {"task": "Detection", "extra_metadata": True}),
    ("VOCDataset", "voc", {"task": "Detection", "class_indexing": {"cat": 5}}),
    *_each("VOCDataset", "voc", "usage", ("bad", "empty", "gone", "nobox", "none"), task="Detection"),
    ("VOCDataset", "voc", {"task": "Detection", "class_indexing": {"ox": 5}}),
    ("VOCDataset", "voc", {"class_indexing": {"cat": 5}}),
    ("VOCDataset", "voc", {"task": "Classification"}),
    ("VOCDataset", "voc", {"task": 3}),
    ("VOCDataset", "voc", {"decrypt": 3}),
    ("VOCDataset", "voc", {"task": "Detection", "class_indexing": 3}),
    *[
        ("CocoDataset", "coco/train", {"annotation_file": f"@coco/{file}.json", "task": task, **more})
        for file, task, more in (
            ("detection", "Detection", {}),
            ("detection", "Detection", {"decode": True, "extra_metadata": True}),
            ("stuff", "Stuff", {"extra_metadata": True}),
            ("keypoints", "Keypoint", {}),
            ("keypoints", "Keypoint", {"extra_metadata": True}),
            ("panoptic", "Panoptic", {}),
            ("panoptic", "Panoptic", {"extra_metadata": True}),
            ("captions", "Captioning", {}),
            ("captions", "Captioning", {"extra_metadata": True}),
            ("other_category", "Detection", {}),
            ("other_image", "Detection", {}),
            ("no_categories", "Detection", {}),
            ("no_categories", "Captioning", {}),
            ("no_annotations", "Detection", {}),
            ("no_box", "Detection", {}),
            ("broken", "Detection", {}),
            ("none", "Detection", {}),
            ("detection", "Segmentation", {}),
            ("detection", 3, {}),
        )
    ],
    ("CocoDataset", "empty", {"annotation_file": "@coco/detection.json"}),
    ("CocoDataset", "coco/train", {}),
    ("KITTIDataset", "kitti", {}),
    ("KITTIDataset", "kitti", {"usage": "test", "decode": True}),
    ("KITTIDataset", "kitti", {"usage": "all"}),
    *_each("WIDERFaceDataset", "wider_face", "usage", (None, "train", "valid", "test", "bad")),
    ("WIDERFaceDataset", "wider_face", DECODED),
    # ---- attributes, faces, lists
    *_each("CelebADataset", "celeba", "usage", ("all", "train", "valid", "test", "bad")),
    ("CelebADataset", "celeba", {"decode": True, "extensions": [".jpg"]}),
    ("CelebADataset", "celeba", {"extensions": [".png"]}),
    ("CelebADataset", "celeba", {"extensions": ".png"}),
    *_each("LFWDataset", "lfw", "usage", (None, "train", "test", "10fold", "bad")),
    *_each("LFWDataset", "lfw", "usage", (None, "train", "test", "10fold"), task="pairs"),
    *_each("LFWDataset", "lfw", "image_set", ("original", "deepfunneled", "bad"), decode=True),
    *[
        ("ManifestDataset", None, {"dataset_file": f"@manifest/{name}.manifest", **more})
        for name, more in (
            ("all", {}),
            ("all", {"usage": "eval", "decode": True}),
            ("all", {"usage": "inference"}),
            ("all", {"class_indexing": {"cat": 4}}),
            ("all", {"class_indexing": 3}),
            ("broken", {}),
            ("gone", {}),
            ("nameless", {}),
            ("none", {}),
        )
    ],
    ("FlickrDataset", "flickr/images", {"annotation_file": "@flickr/tokens.txt"}),
    ("FlickrDataset", "flickr/images", {"annotation_file": "@flickr/tokens.txt", "decode": True}),
    ("FlickrDataset", "flickr/images", {"annotation_file": "@flickr/gone.txt"}),
    ("FlickrDataset", "flickr/images", {"annotation_file": "@flickr/empty.txt"}),
    ("SBUDataset", "sbu", {}),
    ("SBUDataset", "sbu", DECODED),
    *_each("PhotoTourDataset", "photo_tour", "usage", (None, "test", "all"), name="liberty"),
    ("PhotoTourDataset", "photo_tour", {"name": "yosemite"}),
    ("PhotoTourDataset", "photo_tour", {"name": "rome"}),
    *[
        ("Places365Dataset", "places365", {"usage": usage, "small": small, "decode": small})
        for usage in ("train-standard", "train-challenge", "val", "test")
        for small in (True, False)
    ],
    *[
        ("CityscapesDataset", "cityscapes", {"usage": usage, "quality_mode": mode, "task": task})
        for usage, mode, task in (
            ("train", "fine", "instance"),
            ("test", "fine", "semantic"),
            ("val", "fine", "polygon"),
            ("all", "fine", "color"),
            ("all", "coarse", "polygon"),
            ("train_extra", "coarse", "semantic"),
            ("train_extra", "fine", "semantic"),
            ("train", "rough", "semantic"),
            ("train", "fine", "depth"),
        )
    ],
    ("CityscapesDataset", "cityscapes", DECODED),
    ("CityscapesDataset", "cityscapes", {"decode": True, "task": "polygon"}),
    *[
        ("DIV2KDataset", "div2k", {"usage": usage, "downgrade": kind, "scale": scale, "decode": scale == 3})
        for usage, kind, scale in (
            ("train", "bicubic", 2),
            ("valid", "unknown", 3),
            ("all", "bicubic", 8),
            ("train", "mild", 4),
            ("valid", "difficult", 4),
            ("all", "wild", 4),
            ("test", "bicubic", 2),
            ("train", "mild", 2),
            ("train", "unknown", 8),
            ("train", "bicubic", 5),
            ("train", "bad", 2),
        )
    ],
    # ---- folders
    ("Caltech256Dataset", "folders/caltech256", DECODED),
    ("Caltech256Dataset", "folders/caltech256", {}),
    *_each("OmniglotDataset", "folders/omniglot", "background", (None, True, False, 3), decode=True),
    *_each("LSUNDataset", "folders/lsun", "usage", (None, "train", "valid", "test", "bad"), decode=True),
    *_each("LSUNDataset", "folders/lsun", "classes", (["tower"], ["tower", "kitchen"], ["attic"], "tower")),
    *_each("RenderedSST2Dataset", "folders/rendered", "usage", (None, "train", "val", "test", "valid")),
    ("RenderedSST2Dataset", "folders/rendered", DECODED),
    ("SUN397Dataset", "folders/sun397", {}),
    ("SUN397Dataset", "folders/sun397", DECODED),
    ("SUN397Dataset", "folders/sun397_gone", {}),
    *_each("Food101Dataset", "folders/food101", "usage", (None, "train", "test", "bad")),
    ("Food101Dataset", "folders/food101", DECODED),
    # ---- arrays in files
    *_each("STL10Dataset", "stl10", "usage", (None, "train", "test", "unlabeled", "train+unlabeled", "bad")),
    *_each("USPSDataset", "usps/good", "usage", (None, "train", "test", "bad")),
    *[("USPSDataset", f"usps/{name}", {"usage": "train"}) for name in ("short", "word", "empty")],
    ("USPSDataset", "usps/train", {}),
    *[("SemeionDataset", f"semeion/{name}", {}) for name in ("good", "short", "empty")],
    # ---- text
    *[
        (name, f"texts/{path}", {"usage": usage})
        for name, path in (
            ("AGNewsDataset", "csv3"),
            ("AmazonReviewDataset", "csv3"),
            ("DBpediaDataset", "csv3"),
            ("SogouNewsDataset", "csv3"),
            ("YelpReviewDataset", "csv2"),
            ("YahooAnswersDataset", "csv4"),
            ("IMDBDataset", "imdb"),
            ("CoNLL2000Dataset", "conll"),
        )
        for usage in (None, "train", "test", "bad")
    ],
    ("AGNewsDataset", "texts/csv2", {"usage": "train"}),
    ("AGNewsDataset", "texts/nothing", {}),
    ("EnWik9Dataset", "texts/enwik9", {}),
    *[
        (name, f"texts/{path}", {"usage": usage})
        for name, path in (
            ("PennTreebankDataset", "ptb"),
            ("WikiTextDataset", "wiki"),
            ("UDPOSDataset", "udpos"),
        )
        for usage in (None, "train", "test", "valid", "bad")
    ],
    *_each("SST2Dataset", "texts/sst2", "usage", (None, "train", "dev", "test", "all")),
    *_each("Multi30kDataset", "texts/multi30k", "usage", (None, "train", "valid", "test", "bad")),
    *_each(
        "Multi30kDataset",
        "texts/multi30k",
        "language_pair",
        (["de", "en"], ["en", "de"], ["en", "fr"], ["en"], 3),
        usage="train",
    ),
    *_each("SQuADDataset", "texts/squad", "usage", (None, "train", "dev", "test")),
    *_each("SQuADDataset", "texts/squad_broken", "usage", ("train", "dev")),
    *_each("IWSLT2016Dataset", "iwslt/2016", "usage", (None, "train", "valid", "test", "bad")),
    ("IWSLT2016Dataset", "iwslt/2016", {"usage": "valid", "valid_set": "dev2010"}),
    ("IWSLT2016Dataset", "iwslt/2016", {"usage": "test", "test_set": "tst2013"}),
    ("IWSLT2016Dataset", "iwslt/2016", {"language_pair": ["de", "fr"]}),
    ("IWSLT2016Dataset", "iwslt/2016", {"language_pair": ["de", "en"], "usage": "train"}),
    ("IWSLT2016Dataset", "iwslt/2016", {"language_pair": ["en", "de"]}),
    ("IWSLT2016Dataset", "iwslt/2016", {"language_pair": "de-en"}),
    ("IWSLT2016Dataset", "iwslt/2016", {"valid_set": "dev2013"}),
    *_each("IWSLT2017Dataset", "iwslt/2017", "usage", (None, "train", "valid", "test", "bad")),
    # ---- audio
    *_each("CMUArcticDataset", "audio/cmu", "name", (None, "aew", "bdl", "clb", "jmk", "slt", "bad")),
    *_each("GTZANDataset", "audio/gtzan", "usage", (None, "train", "valid", "test", "bad")),
    *_each(
        "LibriTTSDataset",
        "audio/libri_tts",
        "usage",
        (None, "dev-clean", "train-clean-100", "dev-other", "bad"),
    ),
    ("LJSpeechDataset", "audio/lj", {}),
    *_each("SpeechCommandsDataset", "audio/commands", "usage", (None, "train", "valid", "test", "bad")),
    ("SpeechCommandsDataset", "audio/commands_bad", {}),
    *_each(
        "TedliumDataset", "audio/release1", "usage", (None, "train", "dev", "test", "x"), release="release1"
    ),
    ("TedliumDataset", "audio/release1", {"release": "release4"}),
    ("TedliumDataset", "audio/release-3", {"release": "release3"}),
    ("TedliumDataset", "audio/release-3", {"release": "release3", "usage": "train"}),
    ("TedliumDataset", "audio/release1", {"release": "release1", "extensions": ".wav"}),
    *[("YesNoDataset", f"audio/{p}", {}) for p in
      ("yesno", "yesno_bad", "yesno_cut", "yesno_text", "yesno_stereo")],
]  # fmt: skip

# Every source once more: an empty directory, none at all, a directory that is no text.
NEEDED = {
    "CocoDataset": {"annotation_file": "@coco/detection.json"},
    "FlickrDataset": {"annotation_file": "@flickr/tokens.txt"},
    "PhotoTourDataset": {"name": "liberty"},
    "TedliumDataset": {"release": "release1"},
}
for _name in sorted({c[0] for c in CASES} - {"ManifestDataset"}):
    CASES += [(_name, path, NEEDED.get(_name, {})) for path in ("empty", "missing", 3)]


def _value(array) -> object:
    array = np.asarray(array)
    kind = "str" if array.dtype.kind == "U" else str(array.dtype)
    if array.size <= 12:
        return [kind, list(array.shape), array.tolist()]
    return [kind, list(array.shape), zlib.crc32(np.ascontiguousarray(array).tobytes())]


def _kind(error: BaseException) -> str:
    """The first of Python's own types among the bases."""
    return next(t.__name__ for t in type(error).__mro__ if t.__module__ == "builtins")


def run_case(ds, root: Path, case) -> dict:
    """Columns, size, rows in order; or the kind of error and whether it comes when the source is made."""
    name, path, arguments = case
    arguments = {
        k: str(root / v[1:]) if isinstance(v, str) and v.startswith("@") else v for k, v in arguments.items()
    }
    if path is not None:
        arguments["dataset_dir"] = str(root / path) if isinstance(path, str) else path
    try:
        dataset = getattr(ds, name)(shuffle=False, num_parallel_workers=1, **arguments)
    except Exception as error:
        return {"made": _kind(error)}
    found: dict = {}
    try:
        found["columns"] = dataset.get_col_names()
        rows = dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)
        found["rows"] = [[_value(column) for column in row] for row in rows]
    except Exception as error:
        return {"read": _kind(error)}
    try:
        found["size"] = dataset.get_dataset_size()
    except Exception as error:
        found["size"] = _kind(error)
    try:
        found["classes"] = dataset.get_class_indexing()
    except Exception as error:
        found["classes"] = _kind(error)
    return found
