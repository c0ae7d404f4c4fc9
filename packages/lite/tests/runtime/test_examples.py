"""`examples/lite_*`: the same picture gets the same class from programs in C, C++, Java and Python."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite import runtime
from mycelia_lite.converter import convert

ROOT = Path(__file__).resolve().parents[4]
JAVA = ROOT / "packages" / "lite" / "java"
pytestmark = pytest.mark.skipif(shutil.which("c++") is None, reason="there is no C++ compiler")


def _writing(upside_down: bool) -> np.ndarray:
    """A picture of a word as the classifier of text directions takes it: [1, 3, 48, 192] in [-1, 1]."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (192, 48), "white")
    ImageDraw.Draw(picture).text((8, 6), "Mycelia 2026", fill="black", font=ImageFont.load_default(28))
    if upside_down:
        picture = picture.rotate(180)
    return (np.asarray(picture, np.float32).transpose(2, 0, 1)[None] / 255 - 0.5) / 0.5


@pytest.fixture(scope="module", params=["lenet", "text direction", "text upside down"])
def case(request, lenet, tmp_path_factory):
    """(model, picture, class)"""
    folder = tmp_path_factory.mktemp("case")
    if request.param == "lenet":
        made = convert(mslite.FmkType.MINDIR, lenet[0], str(folder / "net")).path
        lenet[1][:1].tofile(folder / "picture.f32")
        return made, str(folder / "picture.f32"), int(lenet[2][0].argmax())
    source = ROOT / "build" / "models" / "ppocr_cls.onnx"
    if not source.is_file():
        pytest.skip("the classifier was not fetched: python tools/fetch_models.py")
    made = convert(mslite.FmkType.ONNX, str(source), str(folder / "net"), {"x": [1, 3, 48, 192]}).path
    turned = request.param.endswith("down")
    _writing(turned).astype(np.float32).tofile(folder / "picture.f32")
    return made, str(folder / "picture.f32"), int(turned)


def answer(*command: object) -> int:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[0])


def linked(folder: Path, *options: object) -> list[str]:
    home = runtime.folder()
    tail = [f"-I{home}/include", f"{home}/libmycelia_lite.a", "-pthread", "-lm"]
    return ["c++", "-std=c++17", "-O1", *map(str, options), *tail]


def test_in_c(case, tmp_path):
    source = ROOT / "examples" / "lite_c" / "classify.c"
    command = ["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-c", source, "-o", "classify.o"]
    subprocess.run([*command, f"-I{runtime.folder()}/include"], check=True, cwd=tmp_path)
    subprocess.run(linked(tmp_path, "classify.o", "-o", "classify"), check=True, cwd=tmp_path)
    assert answer(tmp_path / "classify", *case[:2]) == case[2]
    bad = subprocess.run([tmp_path / "classify", case[0], "/dev/null"], capture_output=True, text=True)
    assert bad.returncode == 1 and "has not the" in bad.stderr


def test_in_cpp(case, tmp_path):
    source = ROOT / "examples" / "lite_cpp" / "classify.cc"
    subprocess.run(linked(tmp_path, source, "-o", "classify"), check=True, cwd=tmp_path)
    assert answer(tmp_path / "classify", *case[:2]) == case[2]


def test_in_python(case):
    assert answer(sys.executable, ROOT / "examples" / "lite_python" / "classify.py", *case[:2]) == case[2]


@pytest.fixture(scope="module")
def jdk(tmp_path_factory):
    """(folder of the classes and of the library, built as docs/lite-runtime.md says, and the java command)"""
    javac, java = shutil.which("javac"), shutil.which("java")
    headers = Path(javac).resolve().parents[1] / "include" if javac else None
    if java is None or headers is None or not (headers / "jni.h").is_file():
        pytest.skip("there is no JDK")
    if shutil.which("cmake") is None:
        pytest.skip("there is no CMake")
    folder = tmp_path_factory.mktemp("java")
    flags = ["-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", "-DCMAKE_JAVA_COMPILE_FLAGS=-Xlint:all;-Werror"]
    configure = ["cmake", "-S", JAVA, "-B", folder, f"-DMYCELIA_LITE={runtime.folder()}", *flags]
    for command in (configure, ["cmake", "--build", folder]):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    sources = [ROOT / "examples" / "lite_java" / "Classify.java", CHECKS]
    jar = folder / "mycelia-lite.jar"
    subprocess.run([javac, "-Xlint:all", "-Werror", "-cp", jar, "-d", folder, *sources], check=True)
    return folder, java


CHECKS = Path(__file__).with_name("Checks.java")


def _run_java(jdk, *arguments: object) -> list[object]:
    folder, java = jdk
    path = f"{folder}:{folder / 'mycelia-lite.jar'}"
    return [java, "-Xss4m", f"-Djava.library.path={folder}", "-cp", path, *arguments]


def test_in_java(case, jdk):
    assert answer(*_run_java(jdk, "Classify", *case[:2])) == case[2]


def test_javas_classes(lenet, jdk, tmp_path):
    path = convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "lenet")).path
    sealed = mslite.Converter()
    sealed.encrypt_key = b"0123456789abcdef".hex()
    encrypted = sealed.convert(mslite.FmkType.MINDIR, lenet[0], str(tmp_path / "sealed")).path
    command = [str(part) for part in _run_java(jdk, "-Xcheck:jni", "Checks", path, encrypted)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all checks passed\n"  # and no warning of the JNI
