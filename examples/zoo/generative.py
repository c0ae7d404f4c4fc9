"""Networks that make pictures: a DCGAN pair (Radford et al. 2015) and a convolutional autoencoder."""

from mycelia import nn, ops


class Generator(nn.Cell):
    """Shapes: noise [N, noise] -> pictures [N, 1, 28, 28] in (-1, 1)."""

    def __init__(self, noise=64, width=32):
        super().__init__()
        self.width = width
        self.spread = nn.Dense(noise, 2 * width * 49)
        self.layers = nn.SequentialCell(
            nn.BatchNorm2d(2 * width), nn.ReLU(), nn.Conv2dTranspose(2 * width, width, 4, 2, "pad", 1),
            nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2dTranspose(width, 1, 4, 2, "pad", 1), nn.Tanh(),
        )  # fmt: skip

    def construct(self, noise):
        return self.layers(self.spread(noise).reshape(-1, 2 * self.width, 7, 7))


class Discriminator(nn.Cell):
    """Shapes: pictures [N, 1, 28, 28] -> [N, 1], logits of being real."""

    def __init__(self, width=32):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(1, width, 4, 2, "pad", 1, has_bias=True), nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, 2, "pad", 1), nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2),
            nn.Flatten(), nn.Dense(2 * width * 49, 1),
        )  # fmt: skip

    def construct(self, pictures):
        return self.layers(pictures)


class GanLoss(nn.Cell):
    """What the generator minimizes plus what the discriminator does, in one number for both.

    Shapes: noise [N, noise], real pictures [N, 1, 28, 28] -> scalar.
    """

    def __init__(self, noise=64, width=32):
        super().__init__()
        self.generator, self.discriminator = Generator(noise, width), Discriminator(width)
        self.loss = nn.BCEWithLogitsLoss()

    def construct(self, noise, real):
        made = self.generator(noise)
        verdict, truth = self.discriminator(made), self.discriminator(real)
        return self.loss(verdict, ops.zeros_like(verdict)) + self.loss(truth, ops.ones_like(truth))


class Autoencoder(nn.Cell):
    """Shapes: pictures [N, 1, 28, 28] -> their reconstruction, in (0, 1)."""

    def __init__(self, width=16, code=32):
        super().__init__()
        self.encoder = nn.SequentialCell(
            nn.Conv2d(1, width, 3, 2, "same", has_bias=True), nn.ELU(),
            nn.Conv2d(width, 2 * width, 3, 2, "same", has_bias=True), nn.ELU(),
            nn.Flatten(), nn.Dense(2 * width * 49, code),
        )  # fmt: skip
        self.spread = nn.Dense(code, 2 * width * 49, activation="relu")
        self.decoder = nn.SequentialCell(
            nn.Conv2dTranspose(2 * width, width, 2, 2, has_bias=True), nn.ELU(),
            nn.Conv2dTranspose(width, 1, 2, 2, has_bias=True), nn.Sigmoid(),
        )  # fmt: skip
        self.width = width

    def construct(self, pictures):
        code = self.spread(self.encoder(pictures))
        return self.decoder(code.reshape(-1, 2 * self.width, 7, 7))
