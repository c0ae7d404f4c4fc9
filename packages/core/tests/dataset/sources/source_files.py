"""Small files in the layouts that sources expect, the same bytes everywhere, and which calls read them."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np


def put(root: Path, name: str, data: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)


def png(seed: int, height: int = 3, width: int = 4, channels: int = 3) -> bytes:
    """A PNG without compression, so that its bytes do not depend on the version of a library."""
    pixels = (np.arange(height * width * channels) * 7 + seed * 13) % 256
    rows = pixels.astype(np.uint8).reshape(height, -1)
    raw = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(raw, 0))
        + chunk(b"IEND", b"")
    )


def wav(seed: int, rate: int = 16000, channels: int = 1, frames: int = 6) -> bytes:
    values = (np.arange(frames * channels) * 4001 + seed * 997) % 65536 - 32768
    data = values.astype("<i2").tobytes()
    width = channels * 2
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, channels, rate, rate * width, width, 16)
    body = b"WAVE" + head + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


# ---- vision ------------------------------------------------------------------------------------------------


def voc(root):
    put(root, "ImageSets/Segmentation/train.txt", "a\nb\r\n")
    put(root, "ImageSets/Main/train.txt", "a\nb\nc\n")
    put(root, "ImageSets/Main/bad.txt", "d\n")
    put(root, "ImageSets/Main/empty.txt", "e\n")
    put(root, "ImageSets/Main/gone.txt", "nowhere\n")
    put(root, "ImageSets/Main/nobox.txt", "f\n")
    for i, name in enumerate("abc"):
        put(root, f"JPEGImages/{name}.jpg", png(i))
        put(root, f"SegmentationClass/{name}.png", png(9 + i))

    def thing(name, box, extra=""):
        corners = "".join(f"<{k}>{v}</{k}>" for k, v in zip(("xmin", "ymin", "xmax", "ymax"), box))
        return f"<object><name>{name}</name>{extra}<bndbox>{corners}</bndbox></object>"

    flags = "<difficult>1</difficult><truncated>1</truncated>"
    for name, things in {
        "a": thing("dog", (1, 2, 10, 20), flags) + thing("cat", (3, 3, 5.5, 8)),
        "b": thing("train", (2, 2, 6, 6)),
        "c": thing("cat", (4, 5, 7, 9), "<truncated>0</truncated>"),
        "d": thing("cat", (4, 5, 3, 9)),
        "e": "",
        "f": "<object><name>cat</name></object>",
    }.items():
        put(root, f"Annotations/{name}.xml", f"<annotation><size/>{things}</annotation>")


def coco(root):
    for i in range(4):
        put(root, f"train/00{i}.jpg", png(i))
    images = [{"id": 10 + i, "file_name": f"00{i}.jpg"} for i in (2, 0, 1, 3)]
    categories = [{"id": 7, "name": "dog", "isthing": 1}, {"id": 2, "name": "sky", "isthing": 0}]

    def write(name, annotations, **more):
        table = {"images": images, "annotations": annotations, "categories": categories} | more
        put(root, f"{name}.json", json.dumps({k: v for k, v in table.items() if v is not None}))

    boxes = [
        {"id": 1, "image_id": 10, "bbox": [1, 2, 3, 4], "category_id": 7, "iscrowd": 0},
        {"id": 2, "image_id": 10, "bbox": [1.5, 2, 3, 4], "category_id": 2, "iscrowd": 1},
        {"id": 3, "image_id": 12, "bbox": [5, 6, 7, 8], "category_id": 2},
    ]
    write("detection", boxes)
    write("stuff", [
        {"id": 1, "image_id": 10, "iscrowd": 0, "segmentation": [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10]]},
        {"id": 2, "image_id": 11, "iscrowd": 1, "segmentation": {"counts": [3, 4, 5], "size": [3, 4]}},
        {"id": 3, "image_id": 10, "iscrowd": 0, "segmentation": [[11, 12, 13]]},
    ])  # fmt: skip
    write("keypoints", [
        {"id": 1, "image_id": 11, "num_keypoints": 2, "keypoints": [1, 2, 2, 3, 4, 1]},
        {"id": 2, "image_id": 11, "num_keypoints": 1, "keypoints": [5, 6, 2, 0, 0, 0]},
        {"id": 3, "image_id": 13, "num_keypoints": 1, "keypoints": [5, 6, 2]},
    ])  # fmt: skip
    info = {"bbox": [1, 2, 3, 4], "category_id": 7, "iscrowd": 0, "area": 12}
    write("panoptic", [
        {"image_id": 10, "segments_info": [info, info | {"category_id": 2, "area": 5}]},
        {"image_id": 13, "segments_info": [info | {"bbox": [0, 0, 1, 1], "iscrowd": 1}]},
    ])  # fmt: skip
    write("captions", [
        {"id": 1, "image_id": 10, "caption": "a dog"},
        {"id": 2, "image_id": 12, "caption": "the sky"},
        {"id": 3, "image_id": 10, "caption": "a big dog"},
    ])  # fmt: skip
    write("other_category", [boxes[0] | {"category_id": 5}])
    write("other_image", [boxes[0] | {"image_id": 5}])
    write("no_categories", boxes, categories=None)
    write("no_annotations", None)
    write("no_box", [{"id": 1, "image_id": 10, "category_id": 7}])
    put(root, "broken.json", "{")


def celeba(root):
    names = [f"{i:06}.jpg" for i in range(1, 5)]
    for i, name in enumerate(names):
        put(root, name, png(i))
    rows = [f"{n}  {' '.join(str(1 if (i + j) % 3 else -1) for j in range(5))}" for i, n in enumerate(names)]
    put(root, "list_attr_celeba.txt", "\n".join(["4", "A B C D E", *rows]) + "\n")
    put(root, "list_eval_partition.txt", "".join(f"{n} {i}\n" for n, i in zip(names, (0, 0, 1, 2))))


def manifest(root):
    lines = [
        {"source": str(root / "1.png"), "usage": "TRAIN", "annotation": [{"name": "cat"}]},
        {"source": str(root / "2.png"), "usage": "train", "annotation": [{"name": "dog"}, {"name": "cat"}]},
        {"source": str(root / "3.png"), "usage": "eval", "annotation": [{"name": "bird"}]},
        {"source": str(root / "t.txt"), "usage": "train", "annotation": [{"name": "ant"}]},
        {"source": str(root / "3.png"), "usage": "train", "annotation": []},
    ]
    for i in (1, 2, 3):
        put(root, f"{i}.png", png(i))
    put(root, "t.txt", "no image")
    put(root, "all.manifest", "\n".join(map(json.dumps, lines)) + "\n")
    put(root, "broken.manifest", "{\n")
    put(root, "gone.manifest", json.dumps(lines[0] | {"source": str(root / "9.png")}) + "\n")
    put(root, "nameless.manifest", json.dumps(lines[0] | {"annotation": [{"x": 1}]}) + "\n")


def usps(root):
    def line(label, start):
        return f"{label} " + " ".join(f"{i + 1}:{((start + i) % 21) / 10 - 1:.1f}" for i in range(256)) + " "

    put(root / "good", "usps", f"{line(1, 0)}\n{line(10, 5)}\n")
    put(root / "good", "usps.t", f"{line(3, 9)}\n")
    put(root / "short", "usps", line(1, 0)[:100] + "\n")
    put(root / "word", "usps", line(1, 0).replace(" 2:", " two:") + "\n")
    put(root / "train", "usps", f"{line(1, 0)}\n")
    put(root / "empty", "usps", "")


def semeion(root):
    rows = []
    for n in (0, 3, 9):
        pixels = " ".join(f"{(i * 3 + n) % 2}.0000" for i in range(256))
        rows.append(pixels + " " + " ".join(str(int(i == n)) for i in range(10)) + " ")
    put(root / "good", "semeion.data", "\n".join(rows) + "\n")
    put(root / "short", "semeion.data", rows[0][:500] + "\n")
    put(root / "empty", "semeion.data", "")


def stl10(root):
    def images(count, seed):
        return ((np.arange(count * 27648) * 7 + seed) % 251).astype(np.uint8).tobytes()

    put(root, "train_X.bin", images(2, 1))
    put(root, "train_y.bin", bytes([3, 10]))
    put(root, "test_X.bin", images(1, 2))
    put(root, "test_y.bin", bytes([1]))
    put(root, "unlabeled_X.bin", images(1, 3))


def folders(root):
    """Directories of images in several layouts."""
    for i, name in enumerate(
        ("001.ak47/001_0001", "001.ak47/001_0002", "002.bag/002_0001", "010.tie/010_0001")
    ):
        put(root / "caltech256", f"{name}.jpg", png(i))
    for part in ("background", "evaluation"):
        for i, name in enumerate(("Latin/c1/02", "Latin/c1/01", "Greek/c2/01", "Greek/c1/05")):
            put(root / "omniglot", f"images_{part}/{name}.png", png(i + len(part)))
    for i, name in enumerate(
        ("bedroom_train/a", "bedroom_val/b", "tower_train/c", "test/d", "kitchen_val/e")
    ):
        put(root / "lsun", f"{name}.jpg", png(i))
    for i, part in enumerate(("train", "test", "valid")):
        for j, kind in enumerate(("positive", "negative")):
            put(root / "rendered", f"{part}/{kind}/0001.png", png(i * 2 + j))
    put(root / "rendered", "train/positive/0002.png", png(7))
    for i, name in enumerate(("b/bar/indoor/sun_2", "b/bar/indoor/sun_1", "a/abbey/sun_9", "a/abbey/other")):
        put(root / "sun397", f"{name}.jpg", png(i))
    put(root / "sun397", "ClassName.txt", "/a/abbey\n/b/bar/indoor\n")
    put(root / "sun397_gone", "ClassName.txt", "/a/abbey\n")
    for i, name in enumerate(("pie/2", "pie/10", "ribs/1", "cake/7")):
        put(root / "food101", f"images/{name}.jpg", png(i))
    put(root / "food101", "meta/train.txt", "ribs/1\npie/2\n")
    put(root / "food101", "meta/test.txt", "pie/10\ncake/7\n")
    put(root / "food101", "meta/classes.txt", "cake\npie\nribs\n")


def places365(root):
    put(root, "categories_places365.txt", "/a/airfield 0\n/b/bakery/shop 1\n")
    put(root, "places365_train_standard.txt", "/a/airfield/2.jpg 0\n/b/bakery/shop/1.jpg 1\n")
    put(root, "places365_train_challenge.txt", "/a/airfield/2.jpg 0\n")
    put(root, "places365_val.txt", "Places365_val_2.jpg 1\nPlaces365_val_1.jpg 0\n")
    for i, size in enumerate(("256", "large")):
        put(root, f"data_{size}_standard/a/airfield/2.jpg", png(i))
        put(root, f"data_{size}_challenge/a/airfield/2.jpg", png(3 + i))
        put(root, f"data_{size}_standard/b/bakery/shop/1.jpg", png(5 + i))
        put(root, f"val_{size}/Places365_val_1.jpg", png(7 + i))
        put(root, f"val_{size}/Places365_val_2.jpg", png(9 + i))


def lfw(root):
    people = {"Ann_Lee": 2, "Bob_Ray": 1, "Cy_Fox": 2}
    for folder in ("lfw", "lfw_funneled", "lfw-deepfunneled"):
        for i, (name, count) in enumerate(people.items()):
            for k in range(1, count + 1):
                put(root, f"{folder}/{name}/{name}_{k:04}.jpg", png(i * 5 + k + len(folder)))
    put(root, "lfw-names.txt", "".join(f"{n}\t{c}\n" for n, c in people.items()))
    put(root, "people.txt", "2\n1\nAnn_Lee\t2\n2\nBob_Ray\t1\nCy_Fox\t2\n")
    put(root, "peopleDevTrain.txt", "2\nAnn_Lee\t2\nBob_Ray\t1\n")
    put(root, "peopleDevTest.txt", "1\nCy_Fox\t2\n")
    put(
        root,
        "pairs.txt",
        "2\t1\nAnn_Lee\t1\t2\nAnn_Lee\t1\tBob_Ray\t1\nCy_Fox\t1\t2\nAnn_Lee\t2\tCy_Fox\t1\n",
    )
    put(root, "pairsDevTrain.txt", "1\nAnn_Lee\t1\t2\nBob_Ray\t1\tCy_Fox\t2\n")
    put(root, "pairsDevTest.txt", "1\nCy_Fox\t1\t2\nAnn_Lee\t1\tCy_Fox\t1\n")


def kitti(root):
    for i in range(2):
        put(root, f"data_object_image_2/training/image_2/{i:06}.png", png(i))
        put(root, f"data_object_image_2/testing/image_2/{i:06}.png", png(5 + i))
    line = "{} 0.5 {} -1.57 {} 1.5 1.6 3.7 -2.5 1.75 13.2 -1.6\n"
    put(root, "data_object_label_2/training/label_2/000000.txt", line.format("Van", 2, "10 20 30.5 40"))
    put(
        root,
        "data_object_label_2/training/label_2/000001.txt",
        line.format("DontCare", -1, "1 2 3 4") + line.format("Car", 0, "5 6 7 8"),
    )


def wider_face(root):
    table = {
        "train": ["0--Parade/0_1", "1--Hands/1_1"],
        "val": ["0--Parade/0_2", "1--Hands/1_9"],
        "test": ["2--Run/2_1"],
    }
    for i, (part, names) in enumerate(table.items()):
        for j, name in enumerate(names):
            put(root, f"WIDER_{part}/images/{name}.jpg", png(i * 3 + j))
    split = "wider_face_split"
    faces = (
        "0--Parade/0_1.jpg\n2\n1 2 3 4 0 1 0 0 1 0 \n5 6 7 8 2 0 1 0 0 1 \n1--Hands/1_1.jpg\n0\n"
        + "0 " * 10
        + "\n"
    )
    put(root, f"{split}/wider_face_train_bbx_gt.txt", faces)
    put(
        root,
        f"{split}/wider_face_val_bbx_gt.txt",
        "0--Parade/0_2.jpg\n1\n9 8 7 6 1 1 1 2 0 0 \n1--Hands/1_9.jpg\n1\n4 3 2 1 0 0 0 0 0 1 \n",
    )
    put(root, f"{split}/wider_face_test_filelist.txt", "2--Run/2_1.jpg\n")


def flickr(root):
    for i, name in enumerate(("b", "a")):
        put(root, f"images/{name}.jpg", png(i))
    lines = [f"{n}.jpg#{k}\tword {n} {k} .\n" for n in "ba" for k in range(3)]
    put(root, "tokens.txt", "".join(lines))
    put(root, "gone.txt", "z.jpg#0\tnothing\n")
    put(root, "empty.txt", "")


def sbu(root):
    urls = [f"http://static.flickr.com/{n}" for n in ("2723/441.jpg", "1/2.jpg", "9/9.jpg")]
    put(root, "SBU_captioned_photo_dataset_urls.txt", "\n".join(urls) + "\n")
    put(root, "SBU_captioned_photo_dataset_captions.txt", "A cat sits. \nA dog\nNothing\n")
    put(root, "sbu_images/m_2723_441.jpg", png(1))
    put(root, "sbu_images/m_1_2.jpg", png(2))


def cityscapes(root):
    for quality, parts in {
        "Fine": ("train", "test", "val"),
        "Coarse": ("train", "train_extra", "val"),
    }.items():
        for i, part in enumerate(parts):
            for j, name in enumerate(("bochum_1_2", "aachen_1_1")):
                city = name.split("_")[0]
                put(root, f"leftImg8bit/{part}/{city}/{name}_leftImg8bit.png", png(i + j))
                base = f"gt{quality}/{part}/{city}/{name}_gt{quality}"
                for k, kind in enumerate(("color", "instanceIds", "labelIds")):
                    put(root, f"{base}_{kind}.png", png(20 + i + j + k))
                put(root, f"{base}_polygons.json", json.dumps({"name": name, "part": part}))


def div2k(root):
    for i, part in enumerate(("train", "valid")):
        for n in ("0002", "0001"):
            put(root, f"DIV2K_{part}_HR/{n}.png", png(i + int(n)))
            for kind, scales in {"bicubic": (2, 3, 4), "unknown": (2, 3, 4)}.items():
                for s in scales:
                    put(root, f"DIV2K_{part}_LR_{kind}/X{s}/{n}x{s}.png", png(s + int(n)))
            for kind in ("mild", "difficult", "wild"):
                put(root, f"DIV2K_{part}_LR_{kind}/{n}x4{kind[0]}.png", png(len(kind) + int(n)))
            put(root, f"DIV2K_{part}_LR_x8/{n}x8.png", png(8 + int(n)))


def photo_tour(root):
    from PIL import Image

    pixels = (np.arange(1024 * 1024).reshape(1024, 1024) // 97 % 256).astype(np.uint8)
    (root / "liberty").mkdir(parents=True)
    for i in range(2):
        Image.fromarray(np.roll(pixels, i * 5, 1)).save(root / "liberty" / f"patches000{i}.bmp")
    put(root, "liberty/info.txt", "0 0 \n0 0 \n1 0 \n2 0 \n")
    put(root, "liberty/m50_100000_100000_0.txt", "0 0 0 1 0 0 0\n2 1 0 300 2 0 0\n")


# ---- text --------------------------------------------------------------------------------------------------


def texts(root):
    put(root / "csv3", "train.csv", '"1","First, one","He said ""yes"""\n"2","b","c\\nd"\n')
    put(root / "csv3", "test.csv", '"3","x","y"\n')
    put(root / "csv2", "train.csv", '"1","First, one"\n"2","b"\n')
    put(root / "csv2", "test.csv", '"3","x"\n')
    put(root / "csv4", "train.csv", '"1","t","c","a"\n')
    put(root / "csv4", "test.csv", '"2","","c","a"\n"3","q","r","s"\n')
    put(root / "nothing", "readme.txt", "")
    put(root / "enwik9", "enwik9", "<page>\n\n  two words \nlast")
    for part in ("train", "test", "valid"):
        put(root / "ptb", f"ptb.{part}.txt", f" a {part} line \n\n b <unk> c \n")
        put(root / "wiki", f"wiki.{part}.tokens", f" \n = {part} = \n \n b c \n")
    put(root / "sst2", "train.tsv", "sentence\tlabel\nhide new secrets \t0\ngood\t1\n")
    put(root / "sst2", "dev.tsv", "sentence\tlabel\nfine\t1\n")
    put(root / "sst2", "test.tsv", "index\tsentence\n0\tuneasy mishmash\n1\tok\n")
    for part in ("train", "test"):
        for kind, score in (("pos", 9), ("neg", 2)):
            for i in range(2):
                put(root / "imdb", f"{part}/{kind}/{i}_{score}.txt", f"{part} {kind} {i}")
    for part in ("train", "test"):
        put(root / "conll", f"{part}.txt", f"He PRP B-NP\n{part} VBZ B-VP\n\n. . O\n\n")
    for part in ("train", "test", "dev"):
        put(root / "udpos", f"en-ud-tag.v2.{part}.txt", f"He\tPRON\tPRP\n{part}\tX\tY\n\n.\tPUNCT\t.\n\n")
    for folder, name in (("training", "train"), ("validation", "val"), ("mmt16_task1_test", "test")):
        put(root / "multi30k", f"{folder}/{name}.en", f"A {name}.\nTwo\n")
        put(root / "multi30k", f"{folder}/{name}.de", f"Ein {name}.\nZwei\n")
    answers = [{"text": "one", "answer_start": 3}, {"text": "uno", "answer_start": 9}]
    asked = [{"question": "q1", "answers": answers}, {"question": "q2", "answers": []}]
    for name in ("train-v1.1", "train-v2.0", "dev-v2.0"):
        page = {"data": [{"paragraphs": [{"context": name, "qas": asked}]}]}
        put(root / "squad", f"{name}.json", json.dumps(page))
    put(root / "squad_broken", "train-v1.1.json", "{")
    put(root / "squad_broken", "dev-v1.1.json", '{"x": 1}')


def iwslt(root):
    sub = {"2016": "texts/de/en/de-en", "2017": "texts/DeEnItNlRo/DeEnItNlRo/DeEnItNlRo-DeEnItNlRo"}
    for year, folder in sub.items():
        for lang in ("de", "en"):
            lines = f"<url>http://x</url>\n<title>T</title>\n {lang} one \n{lang} two\n</doc>\n"
            put(root / year, f"{folder}/train.tags.de-en.{lang}", lines)
            for part in ("dev2010", "tst2010", "tst2013", "tst2014"):
                segs = f'<seg id="1"> {lang} {part} </seg><seg id="2">x</seg>'
                docs = f'<doc docid="1"><title>t</title>{segs}</doc><doc docid="2">{segs}</doc>'
                xml = f"<mteval><srcset>{docs}</srcset></mteval>"
                put(root / year, f"{folder}/IWSLT{year[2:]}.TED.{part}.de-en.{lang}.xml", xml)


# ---- audio -------------------------------------------------------------------------------------------------


def audio(root):
    cmu = root / "cmu"
    put(
        cmu,
        "cmu_us_aew_arctic/etc/txt.done.data",
        '( arctic_a0001 "Author, etc." )\n( arctic_a0002 "Not." )\n',
    )
    put(cmu, "cmu_us_bdl_arctic/etc/txt.done.data", '( arctic_b0001 "Hm" )\n')
    put(cmu, "cmu_us_clb_arctic/etc/txt.done.data", "( arctic_b0001 Hm )\n")
    put(cmu, "cmu_us_jmk_arctic/etc/txt.done.data", '( arctic_b0001 "Hm" )\n')
    for i in (1, 2):
        put(cmu, f"cmu_us_aew_arctic/wav/arctic_a000{i}.wav", wav(i))
    put(cmu, "cmu_us_bdl_arctic/wav/arctic_b0001.wav", wav(3, rate=8000))
    for i, name in enumerate(("blues/blues.00029", "jazz/jazz.00002", "rock/rock.00010", "pop/pop.00051")):
        put(root / "gtzan", f"{name}.wav", wav(i, rate=22050))
    tts = root / "libri_tts"
    put(
        tts,
        "dev-clean/84/121123/84_121123.trans.tsv",
        "84_121123_000008_000000\tHi.\thi\n84_121123_000009_000000\tA\ta\n",
    )
    put(tts, "dev-clean/84/121123/84_121123_000008_000000.wav", wav(1, rate=24000))
    put(tts, "dev-clean/84/121123/84_121123_000009_000000.wav", wav(2, rate=24000))
    put(tts, "train-clean-100/9/7/9_7.trans.tsv", "9_7_000001_000000\tB\tb\n")
    put(tts, "train-clean-100/9/7/9_7_000001_000000.wav", wav(3, rate=24000))
    put(root / "lj", "metadata.csv", "LJ001-0001|Printing, 1|Printing, one\nLJ001-0002|b|b\n")
    for i in (1, 2):
        put(root / "lj", f"wavs/LJ001-000{i}.wav", wav(i, rate=22050))
    commands = root / "commands"
    for i, name in enumerate(
        ("cat/b4_nohash_0", "cat/5a_nohash_1", "dog/b4_nohash_12", "_background_noise_/x")
    ):
        put(commands, f"{name}.wav", wav(i))
    put(commands, "testing_list.txt", "dog/b4_nohash_12.wav\n")
    put(commands, "validation_list.txt", "cat/5a_nohash_1.wav\n")
    put(root / "commands_bad", "cat/noname.wav", wav(1))
    head = b"NIST_1A\n   1024\nsample_count -i 40\nsample_rate -i 10\nchannel_count -i 1\nend_head\n".ljust(
        1024
    )
    for release, parts in {"release1": ("train", "test", "dev"), "release-3": ("data",)}.items():
        for i, part in enumerate(parts):
            data = ((np.arange(80) * 911 + i) % 60000 - 30000).astype(">i2").tobytes()
            put(root / release, f"{part}/sph/Talk_{part}.sph", head + data)
            lines = "Talk_{0} 1 Ann 0.5 1.1 <o,f0,female> hello you\nTalk_{0} 1 Bob 2 2.5 <NA> ignore_time\n"
            put(root / release, f"{part}/stm/Talk_{part}.stm", lines.format(part))
    for i, name in enumerate(("0_1_0_1", "1_1_0_0")):
        put(root / "yesno", f"{name}.wav", wav(i, rate=8000))
    put(root / "yesno_bad", "a_b.wav", wav(1, rate=8000))
    put(root / "yesno_cut", "1_0.wav", wav(1, rate=8000)[:20])
    put(root / "yesno_text", "1_0.wav", "not a sound")
    put(root / "yesno_stereo", "1_0.wav", wav(1, rate=8000, channels=2))


LAYOUTS = {
    "voc": voc, "coco": coco, "celeba": celeba, "manifest": manifest, "usps": usps, "semeion": semeion,
    "stl10": stl10, "folders": folders, "places365": places365, "lfw": lfw, "kitti": kitti,
    "wider_face": wider_face, "flickr": flickr, "sbu": sbu, "cityscapes": cityscapes, "div2k": div2k,
    "photo_tour": photo_tour, "texts": texts, "iwslt": iwslt, "audio": audio,
}  # fmt: skip


def make(root: Path) -> None:
    """Write everything below `root`, one directory per layout, and an empty one."""
    for name, write in LAYOUTS.items():
        write(root / name)
    (root / "empty").mkdir()
