"""LeNet-5 on images of handwritten digits, light on dark."""

import io

import numpy as np
from PIL import Image

from mycelia_serving.server import register

MEAN, DEVIATION = 0.1307, 0.3081  # of the training digits

model = register.declare_model(model_file="lenet.mindir", model_format="MindIR")


def decode(image):
    """The bytes of an image file [n] as what the net was trained on [1, 32, 32]: 28 x 28, with a rim."""
    digit = Image.open(io.BytesIO(image)).convert("L").resize((28, 28))
    field = np.zeros((1, 32, 32), np.float32)
    field[0, 2:30, 2:30] = np.asarray(digit, np.float32) / 255
    return (field - MEAN) / DEVIATION


def best(scores):
    """The digit with the highest of ten scores, and its probability."""
    odds = np.exp(scores - scores.max())
    digit = int(scores.argmax())
    return digit, float(odds[digit] / odds.sum())


def decode_many(instances):
    for (image,) in instances:
        yield decode(image)


def best_many(instances):
    for (scores,) in instances:
        yield best(scores)


@register.register_method(output_names=["digit", "probability"], default=True)
def classify(image):
    x = register.add_stage(decode, image, outputs_count=1)
    scores = register.add_stage(model, x, outputs_count=1)
    digit, probability = register.add_stage(best, scores, outputs_count=2)
    return digit, probability


@register.register_method(output_names=["digit", "probability"])
def classify_many(image):
    x = register.add_stage(decode_many, image, outputs_count=1, batch_size=16)
    scores = register.add_stage(model, x, outputs_count=1)
    digit, probability = register.add_stage(best_many, scores, outputs_count=2, batch_size=16)
    return digit, probability


@register.register_method(output_names=["scores"])
def predict(x):
    return register.add_stage(model, x, outputs_count=1)
