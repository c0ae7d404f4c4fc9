"""Networks for sequences: LSTM, GRU, transformer encoder-decoder (Vaswani et al. 2017), BERT-like encoder
(Devlin et al. 2018), ViT (Dosovitskiy et al. 2020).
"""

import numpy as np

import mycelia as ms
from mycelia import nn, ops


class RecurrentClassifier(nn.Cell):
    """The last state of a recurrent network, classified.  Shapes: x [N, T, inputs] -> [N, classes]."""

    def __init__(self, kind="lstm", inputs=128, hidden=256, layers=1, classes=10, bidirectional=False):
        super().__init__()
        cell = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[kind]
        self.recurrent = cell(inputs, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.head = nn.Dense(hidden * (2 if bidirectional else 1), classes)

    def construct(self, x):
        return self.head(self.recurrent(x)[0][:, -1])


def sinusoids(length, width):
    """Position encodings of Vaswani et al., section 3.5.  Shapes: [length, width]."""
    angles = np.arange(length)[:, None] / 10000 ** (np.arange(0, width, 2) / width)
    return np.stack((np.sin(angles), np.cos(angles)), -1).reshape(length, width).astype(np.float32)


class Translator(nn.Cell):
    """Transformer encoder-decoder.

    Shapes: source [N, S] and target [N, T] token ids -> [N, T, vocabulary].
    """

    def __init__(self, vocabulary=1000, width=128, heads=4, layers=2, longest=64):
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.positions = ms.Tensor(sinusoids(longest, width))
        self.transformer = nn.Transformer(
            width, heads, layers, layers, 4 * width, dropout=0.0, batch_first=True
        )
        self.head = nn.Dense(width, vocabulary)

    def construct(self, source, target):
        length = target.shape[1]
        later = ms.Tensor(np.triu(np.full((length, length), -np.inf, np.float32), 1))
        encoded = self.source(source) + self.positions[: source.shape[1]]
        decoded = self.target(target) + self.positions[:length]
        return self.head(self.transformer(encoded, decoded, tgt_mask=later))


class Encoder(nn.Cell):
    """BERT-like classifier.  Shapes: token ids [N, T] -> [N, classes]."""

    def __init__(self, vocabulary=30522, width=256, heads=4, layers=4, longest=512, classes=2):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
        self.table, self.places = nn.Embedding(vocabulary, width), nn.Embedding(longest, width)
        self.layers, self.norm = nn.TransformerEncoder(layer, layers), nn.LayerNorm((width,))
        self.head = nn.Dense(width, classes)

    def construct(self, tokens):
        x = self.table(tokens) + self.places(ops.arange(tokens.shape[1]))
        return self.head(self.layers(self.norm(x))[:, 0])


class VisionTransformer(nn.Cell):
    """ViT: patches as tokens, one more for the class.  Shapes: x [N, 3, size, size] -> [N, classes]."""

    def __init__(self, size=224, patch=16, width=192, heads=3, layers=12, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch, "valid", has_bias=True)
        self.token = ms.Parameter(ops.zeros((1, 1, width)))
        self.places = ms.Parameter(ms.Tensor(sinusoids((size // patch) ** 2 + 1, width)))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.layers, self.norm = nn.TransformerEncoder(layer, layers), nn.LayerNorm((width,))
        self.head = nn.Dense(width, classes)

    def construct(self, x):
        x = self.patches(x).flatten(start_dim=2).swapaxes(1, 2)
        token = ops.broadcast_to(self.token, (x.shape[0], 1, x.shape[2]))
        x = self.layers(ops.cat((token, x), 1) + self.places)
        return self.head(self.norm(x)[:, 0])
