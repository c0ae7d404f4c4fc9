"""Two networks that are trained by turns in eager code, as a user starts it: the discriminator in odd steps,
whose optimizer has the rate 0, the generator in even ones."""

import numpy as np

import mycelia as ms
from mycelia import nn, ops


class Net(nn.Cell):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.fc = nn.Dense(inputs, outputs)

    def construct(self, x):
        return ops.sigmoid(self.fc(x))


class Fooling(nn.Cell):
    def __init__(self, generator, discriminator):
        super().__init__()
        self.generator, self.discriminator = generator, discriminator

    def construct(self, noise):
        return -ops.log(self.discriminator(ops.tanh(self.generator(noise)))).mean()


class Telling(nn.Cell):
    def __init__(self, discriminator):
        super().__init__()
        self.discriminator = discriminator

    def construct(self, real):
        return -ops.log(self.discriminator(real)).mean()


ms.set_seed(1)
ms.set_context(mode=ms.PYNATIVE_MODE)
generator, discriminator = Net(3, 4), Net(4, 1)
tell = nn.TrainOneStepCell(Telling(discriminator), nn.SGD(discriminator.trainable_params(), 0.0))
fool = nn.TrainOneStepCell(Fooling(generator, discriminator), nn.Adam(generator.trainable_params(), 0.01))
rng = np.random.default_rng(0)
for number in range(1, 9):
    is_odd = number % 2
    given = ms.Tensor(rng.standard_normal((5, 4 if is_odd else 3)).astype(np.float32))
    (tell if is_odd else fool)(given)
print("trained", float(discriminator.fc.bias.asnumpy()[0]), flush=True)
