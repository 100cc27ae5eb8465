"""`make demo`: three ONNX models of other packages on a file, a picture and a sound.

What they say, and how long a run takes beside ONNX Runtime on the same threads, where that is installed.
The packages are magika (the kinds of files), rapidocr-onnxruntime (text in pictures) and silero-vad (speech);
only their model files are read.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

import opendml as dml

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "operators.png"
RUNS = 9
RATE = 16_000  # samples of sound in a second
WINDOW, CONTEXT = 512, 64  # samples that the model of speech hears at once, and of those before

Floats = NDArray[np.float32]
Feed = Mapping[str, NDArray[Any]]


def main() -> None:
    """Run the three models."""
    for name, run in (("file", look_at_file), ("picture", read_picture), ("sound", hear_sound)):
        try:
            run()
        except ModuleNotFoundError as missing:
            print(f"{name}: left out ({missing})")


def look_at_file() -> None:
    """Print the kind of this file, found from its first and last 1,024 bytes without white space around."""
    folder = package("magika") / "models" / "standard_v3_3"
    labels = json.loads((folder / "config.min.json").read_text(encoding="utf-8"))["target_labels_space"]
    content = Path(__file__).read_bytes()
    parts = np.full((2, 1024), 256, np.int32)
    first, last = content[:4096].lstrip()[:1024], content[-4096:].rstrip()[-1024:]
    parts[0, : len(first)] = list(first)
    parts[1, 1024 - len(last) :] = list(last)
    path = folder / "model.onnx"
    model = dml.onnx.load(path)
    feed = {"bytes": parts.reshape(1, -1)}
    (chances,) = model.run(feed).values()
    best = int(chances.argmax())
    print(f"file {Path(__file__).name}: {labels[best]}, {chances.max():.0%}", end="; ")
    print_times(model, path, feed)


def read_picture() -> None:
    """Print the words in the README's picture: one model finds them, another reads them."""
    folder = package("rapidocr_onnxruntime") / "models"
    finder, reader = folder / "ch_PP-OCRv4_det_infer.onnx", folder / "ch_PP-OCRv4_rec_infer.onnx"
    picture = Image.open(PICTURE).convert("RGB")
    sizes = [-(-size // 32) * 32 for size in picture.size]
    shown = as_input(picture.resize((sizes[0], sizes[1])))
    model = dml.onnx.load(finder)
    (found,) = model.run({"x": shown}).values()
    words, read = characters(reader), dml.onnx.load(reader)
    lines = [line(read, words, picture, box) for box in boxes(found[0, 0], picture.size)]
    print(f"picture {PICTURE.name}: {' | '.join(filter(None, lines))}", end="; ")
    print_times(model, finder, {"x": shown})


def hear_sound() -> None:
    """Print which part of a sound is speech: half a second of silence, a sung vowel, silence again."""
    path = package("silero_vad") / "data" / "silero_vad.onnx"
    model, state = dml.onnx.load(path), np.zeros((2, 1, 128), np.float32)
    sound = np.concatenate([np.zeros(CONTEXT, np.float32), vowel()])
    chances = []
    for start in range(0, len(sound) - CONTEXT - WINDOW + 1, WINDOW):
        heard = sound[np.newaxis, start : start + CONTEXT + WINDOW]
        feed = {"input": heard, "state": state, "sr": np.array(RATE, np.int64)}
        results = model.run(feed)
        state = results["stateN"]
        chances.append(float(results["output"][0, 0]))
    steps = "".join(" .:-=+*#"[min(7, int(8 * chance))] for chance in chances)
    print(f"sound, speech in each 32 ms: [{steps}]", end="; ")
    print_times(model, path, feed)


def package(name: str) -> Path:
    """Return the folder of a package, which is not imported.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"the package {name} is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def as_input(picture: Image.Image) -> Floats:
    """Return pixels as the models of text take them: (1, 3, height, width), from -1 to 1, blue first."""
    pixels = np.asarray(picture, np.float32)[..., ::-1] / 127.5 - 1
    return np.ascontiguousarray(pixels.transpose(2, 0, 1)[np.newaxis])


def boxes(chances: Floats, size: tuple[int, int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the boxes of lines of text: left, upper, right, lower, in pixels of the picture."""
    regions, _ = ndimage.label(chances > 0.3)
    down, right = size[1] / chances.shape[0], size[0] / chances.shape[1]
    for rows, columns in ndimage.find_objects(regions):
        margin = 0.6 * (rows.stop - rows.start)  # what is found is the middle of the letters
        yield (
            max(0, int((columns.start - margin) * right)),
            max(0, int((rows.start - margin) * down)),
            min(size[0], int((columns.stop + margin) * right)),
            min(size[1], int((rows.stop + margin) * down)),
        )


def characters(reader: Path) -> list[str]:
    """Return the characters of the model's classes, as its file states them."""
    import onnx

    properties = {each.key: each.value for each in onnx.load(reader).metadata_props}
    return ["", *properties["character"].splitlines(), " "]


def line(
    model: dml.onnx.OnnxModel, words: list[str], picture: Image.Image, box: tuple[int, int, int, int]
) -> str:
    """Read the text in a box."""
    cut = picture.crop(box)
    width = max(32, round(cut.width * 48 / cut.height / 32) * 32)
    (chances,) = model.run({"x": as_input(cut.resize((width, 48)))}).values()
    classes = chances[0].argmax(axis=-1)
    kept = np.diff(classes, prepend=0) != 0
    return "".join(words[each] for each in classes[kept])


def vowel() -> Floats:
    """Make a voice of 120 to 140 Hz, with the loudest overtones of an "a", between two silences."""
    seconds = np.arange(RATE) / RATE
    pitch = 120 + 20 * seconds
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    voice = np.zeros(RATE)
    for overtone in range(1, 30):
        loudness = sum(np.exp(-(((overtone * 130 - peak) / 120) ** 2)) for peak in (730, 1090, 2440))
        voice += (loudness + 0.02) * np.sin(overtone * phase)
    loud = np.sin(np.pi * seconds) ** 0.5 * (1 + 0.3 * np.sin(2 * np.pi * 5 * seconds))
    silence = np.zeros(RATE // 2)
    return np.concatenate([silence, 0.2 * voice / np.abs(voice).max() * loud, silence]).astype(np.float32)


def print_times(model: dml.onnx.OnnxModel, path: Path, feed: Feed) -> None:
    """Print the median times of runs that take turns with ONNX Runtime's."""
    contenders: dict[str, Callable[[], object]] = {"opendml": lambda: model.run(feed)}
    try:
        import onnxruntime
    except ModuleNotFoundError:
        pass
    else:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        contenders["ONNX Runtime"] = lambda: session.run(None, dict(feed))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(RUNS):
        for name, run in contenders.items():
            time.sleep(0.05)  # threads of the other one wait busily for a moment
            run()
            begun = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begun)
    medians = (f"{name} {statistics.median(each) * 1e3:.2f} ms" for name, each in seconds.items())
    print(", ".join(medians), flush=True)


if __name__ == "__main__":
    main()
