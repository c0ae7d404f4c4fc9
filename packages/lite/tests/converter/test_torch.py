"""Programs of torch.export, against torch; they need the package torch."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia_lite as mslite
from mycelia_lite.converter import ConversionError, Job, convert, explain, trial

torch = pytest.importorskip("torch")
nn, f = torch.nn, torch.nn.functional
PYTORCH = mslite.FmkType.PYTORCH


def made(net, *shapes, **options):
    torch.manual_seed(3)
    inputs = [s if isinstance(s, torch.Tensor) else torch.randn(*s) for s in shapes]
    net = net.eval() if isinstance(net, nn.Module) else Lambda(net)
    return net, inputs, torch.export.export(net, tuple(inputs), **options)


class Lambda(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *x):
        return self.function(*x)


def compared(tmp_path, net, *shapes):
    """Convert the program of a net and hold its answers against torch's."""
    net, inputs, program = made(net, *shapes)
    path = convert(PYTORCH, program, str(tmp_path / "net"), check=True).path
    model = mslite.Model()
    model.build_from_file(path)
    found = trial.answers(model, [x.numpy() for x in inputs])
    with torch.no_grad():
        wanted = net(*inputs)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    assert len(found) == len(wanted)
    for a, b in zip(found, (w.numpy() for w in wanted)):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert np.allclose(a, b, rtol=2e-4, atol=2e-5, equal_nan=True), np.abs(a - b).max()


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.pool = nn.MaxPool2d(2)
        self.mean = nn.AvgPool2d(3, 2, 1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        x = f.hardswish(self.stem(x))
        x = x + f.silu(self.depthwise(x))
        y = f.adaptive_avg_pool2d(self.pool(x), 1).flatten(1)
        return self.head(y).softmax(-1), self.mean(x), torch.tanh(self.up(x)), f.leaky_relu(x, 0.2)


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(50, 16)
        self.block = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
        self.out = nn.Linear(16, 7)

    def forward(self, i):
        return self.out(self.block(self.words(i))).log_softmax(-1)


def test_images(tmp_path):
    compared(tmp_path, Images(), (2, 3, 16, 16))


def test_a_transformer(tmp_path):
    compared(tmp_path, Text(), torch.arange(12).reshape(2, 6) * 4)


class Signal(nn.Module):
    """Sides that differ, one dimension, sizes beside one another that are not equal."""

    def __init__(self):
        super().__init__()
        self.line = nn.Conv1d(2, 6, 3, stride=2, padding=1, dilation=2, groups=2)
        self.back = nn.ConvTranspose1d(6, 2, 4, 2, 1)
        self.wide = nn.Conv2d(1, 3, (1, 3), (2, 1), (0, 1))
        self.pool = nn.MaxPool2d((1, 2), (2, 1), (0, 1), ceil_mode=True)
        self.mean = nn.AvgPool2d((3, 2), (1, 2), (1, 0), count_include_pad=False)
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        y = self.norm(self.line(x))
        z = self.wide(x.unsqueeze(1))
        return y, self.back(y), self.pool(z), self.mean(z), f.avg_pool1d(x, 3, 2, 1)


def test_sides_that_differ(tmp_path):
    compared(tmp_path, Signal(), (3, 2, 19))


class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Conv3d(2, 4, (3, 1, 2), (2, 1, 1), (1, 0, 1), (1, 1, 2), 2)
        self.norm, self.slopes = nn.BatchNorm3d(4), nn.PReLU(4)
        self.back = nn.ConvTranspose3d(4, 2, 3, 2, 1, (1, 0, 1), 2)

    def forward(self, x):
        y = self.slopes(self.norm(self.wide(x)))
        return y, self.back(y)


def test_a_volume(tmp_path):
    compared(tmp_path, Volume(), (2, 2, 5, 4, 6))


def test_a_recurrent_layer(tmp_path):
    compared(tmp_path, nn.GRU(4, 5, batch_first=True), (2, 3, 4))


A = torch.linspace(-3, 3, 24).reshape(2, 3, 4)
PLACES = torch.tensor([[[0, 1, 2, 0]], [[2, 0, 1, 1]]])
FUNCTIONS = {
    "arithmetic": lambda x: (x + 2, 2 - x, x * 3 / 4, x // 0.7, x % 0.7, torch.add(x, x, alpha=3), -x, x**2),
    "elements": lambda x: (x.exp(), x.abs().sqrt(), x.erf(), x.sigmoid(), x.floor(), x.ceil()),
    "more elements": lambda x: (x.sin(), x.round(), x.log1p(), x.rsqrt(), x.abs().log2(), 1 / x, x.sign()),
    "activations": lambda x: (f.gelu(x), f.gelu(x, approximate="tanh"), f.elu(x), f.hardtanh(x), f.mish(x)),
    "comparisons": lambda x: (x > 1, x == x.abs(), (x < 0) & (x > -2), torch.where(x > 0, x, x * 2)),
    "reductions": lambda x: (x.sum(), x.mean(1), x.amax(-1, True), x.prod(0), x.var(-1), x.std(1)),
    "more reductions": lambda x: (x.max(1)[0], x.min(-1)[1], (x > 0).any(0), (x > 0).all(1), x.argmax(1)),
    "clamps": lambda x: (x.clamp(-1, 1), x.clamp(min=0), torch.maximum(x, x * 2), x.clamp(max=x.mean())),
    "shapes": lambda x: (x.view(6, 4), x.permute(2, 0, 1), x.unsqueeze(1), x[:, 1], x[:, :, 1:-1], x[:, ::2]),
    "joins": lambda x: (torch.cat([x, x], 1), torch.stack([x, x]), *x.split(2, 1), x.repeat(1, 2, 1)),
    "moves": lambda x: (x.flip(1), x.expand(2, 2, 3, 4), f.pad(x, (1, 2)), x.roll(1, 1), x.transpose(0, 2)),
    "picks": lambda x: (
        x.gather(2, torch.zeros(2, 3, 1, dtype=torch.int64)), x.index_select(1, torch.tensor([2, 0])),
        x[:, torch.tensor([-1, 0])], x.topk(2)[0], x.masked_fill(x > 1, 5.0),
    ),
    "types": lambda x: (x.int(), x.to(torch.float64) * 2, (x > 0).float(), x.int() + 1.5, x.int() * 2),
    "made": lambda x: (torch.full((2, 3), 7.0) + x.sum(), torch.ones_like(x), torch.arange(4) * x),
    "sums": lambda x: (x.cumsum(1), torch.linalg.vector_norm(x, 1, 0), x.norm(), *x.chunk(2, 2)),
    "more picks": lambda x: (
        x[torch.tensor([0, 1]), torch.tensor([2, -1])], x[:, torch.tensor([[1], [0]]), torch.tensor([3, 0])],
        x[torch.tensor([1, 0]), :, torch.tensor([3, 0])], x.sort(1)[0], x.sort(2, True)[1],
    ),
    "sizes": lambda x: (
        f.interpolate(x, scale_factor=2.0), f.interpolate(x, 7, mode="linear"),
        f.interpolate(x[None], scale_factor=(1.5, 0.7), mode="bilinear"),
        f.interpolate(x[None], (1, 1), mode="bicubic"),
        f.interpolate(x[None], scale_factor=1.7, mode="bilinear", align_corners=True),
        f.interpolate(x[None, None], (3, 5, 2), mode="trilinear"),
        f.interpolate(x[None], (5, 2), mode="nearest"),
    ),
    "places": lambda x: tuple(
        f.grid_sample(x[None], torch.sin(5 * x[:1, :, :2])[None] * 1.2, mode, sides, corners)
        for mode, sides, corners in (("bilinear", "zeros", False), ("nearest", "border", True),
                                     ("bicubic", "reflection", False), ("bilinear", "reflection", True))
    ),
    "volumes": lambda x: (
        f.max_pool3d(x[None], 2, 1),
        f.avg_pool3d(x[None], (1, 2, 3), (1, 1, 2), (0, 1, 1), count_include_pad=False),
        f.adaptive_avg_pool3d(x[None], 1), f.adaptive_avg_pool3d(x[None], (1, 3, 2)),
        f.avg_pool3d(x[None, None], 2, 1), f.max_pool3d(x[None, None], 2, 1, 1),
    ),
    "sides": lambda x: (
        f.pad(x, (1, 2), "reflect"), f.pad(x[None], (0, 2, 1, 0), "replicate"),
        f.pad(x, (2, 1), "replicate"),
        f.pad(x[None], (1, 0, 2, 1), "reflect"), f.pad(x[None, None], (1, 0, 2, 1, 1, 1), "replicate"),
    ),
    "scattered": lambda x: (
        x.scatter(1, PLACES, x * 2), x.scatter(2, PLACES, 7.0), x.scatter_add(0, PLACES % 2, x),
        x.scatter_reduce(1, PLACES, x, "amax"), torch.slice_scatter(x, x[:, :1] + 1, 1, 1, 2),
        torch.select_scatter(x, x[:, :, 0], 2, -1),
        f.fold(x[:1].reshape(1, 4, 3), (2, 4), 2),
    ),
    "angles": lambda x: (torch.atan2(x, x.flip(2)), torch.isinf(x / 0), (x > 0) & True, (x > 0) ^ True),
    "each channel": lambda x: (
        f.instance_norm(x), torch.var(x, 1, unbiased=False), x.var((0, 2), keepdim=True),
    ),
    "norms": lambda x: (f.layer_norm(x, (4,)), f.group_norm(x, 3), f.normalize(x, dim=1), f.softmax(x, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(tmp_path, name):
    compared(tmp_path, FUNCTIONS[name], A)


def test_a_saved_program_with_an_open_batch(tmp_path):
    batch = torch.export.Dim("n")
    net, (x,), program = made(Images(), (2, 3, 16, 16), dynamic_shapes={"x": {0: batch}})
    torch.export.save(program, tmp_path / "net.pt2")
    made_file = convert(PYTORCH, str(tmp_path / "net.pt2"), str(tmp_path / "net")).path
    model = mslite.Model()
    model.build_from_file(made_file)
    assert model.get_inputs()[0].shape == [-1, 3, 16, 16]
    for n in (1, 5):
        x = torch.randn(n, 3, 16, 16)
        found = trial.answers(model, [x.numpy()])
        with torch.no_grad():
            assert all(np.allclose(a, b.numpy(), atol=1e-5) for a, b in zip(found, net(x)))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: torch.linalg.det(x[:, :, :3]), "det"),
        (lambda x: x[x > 0], "aten"),
        (lambda x: torch.bernoulli(x.sigmoid()), "rand"),
        (lambda x: f.max_pool3d(x[None], 2, return_indices=True)[1], "indices of the largest"),
        (lambda x: f.max_pool2d(x, 2, return_indices=True)[1], "indices of the largest"),
    ],
)
def test_what_is_not_imported_is_told_with_its_node(tmp_path, function, reason):
    _, _, program = made(function, A)
    with pytest.raises(ConversionError, match=f"node '.*{reason}"):
        convert(PYTORCH, program, str(tmp_path / "net"))
    assert explain(Job(PYTORCH, program, str(tmp_path / "net"))) and not list(tmp_path.iterdir())


def test_a_program_that_changes_its_buffers_is_refused(tmp_path):
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    _, _, program = made(Counting(), (2, 3))
    with pytest.raises(NotImplementedError, match="changes buffers"):
        convert(PYTORCH, program, str(tmp_path / "net"))


def test_other_shapes_than_the_programs_are_refused(tmp_path):
    _, _, program = made(Images(), (2, 3, 16, 16))
    for shapes, reason in (({"x": [1, 3, 16, 16]}, "was exported for"), ({"y": [1]}, "the inputs are")):
        with pytest.raises(ConversionError, match=reason):
            convert(PYTORCH, program, str(tmp_path / "net"), shapes)


def test_a_file_that_is_no_program_is_told(tmp_path):
    (tmp_path / "net.pt2").write_bytes(b"no program")
    with pytest.raises(ConversionError, match="no program that torch.export.save wrote") as caught:
        convert(PYTORCH, str(tmp_path / "net.pt2"), str(tmp_path / "net"))
    assert caught.value.code == -200


def _joins(x):
    return torch.cat([x, x.relu()], 1), torch.cat([x, x + 1], 0), x.mean(0, True).expand_as(x)


def _parts(x):
    return x[1:], x[:-1] * 2, x[-2:], x[:2], x[::2], x[0], x[-1], torch.cat([x[1:], x[:1]])


@pytest.mark.parametrize("function", [_joins, _parts])
def test_an_open_batch_is_joined_and_sliced(tmp_path, function):
    _, _, program = made(function, (4, 3, 4), dynamic_shapes=(({0: torch.export.Dim("n", min=3)},),))
    model = mslite.Model()
    model.build_from_file(convert(PYTORCH, program, str(tmp_path / "net")).path)
    for n in (3, 6):
        x = torch.randn(n, 3, 4)
        for a, b in zip(trial.answers(model, [x.numpy()]), function(x), strict=True):
            assert a.shape == b.shape and np.allclose(a, b.numpy(), atol=1e-5)


def test_open_sizes_are_numbers_too(tmp_path):
    def function(x):
        return x.reshape(x.shape[0] * 3, 4) * x.shape[0], x.sum() / x.shape[0]

    _, _, program = made(function, (2, 3, 4), dynamic_shapes=(({0: torch.export.Dim("n")},),))
    model = mslite.Model()
    model.build_from_file(convert(PYTORCH, program, str(tmp_path / "net"), check=True).path)
    for n in (2, 5):
        x = torch.randn(n, 3, 4)
        for a, b in zip(trial.answers(model, [x.numpy()]), function(x), strict=True):
            assert np.allclose(a, b.numpy(), atol=1e-5)


# ---- control flow


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.left, lambda x: torch.relu(self.right(x)), (x,)) + 1


class Halving(nn.Module):
    """Repeats a layer until the sum is small, at most n times."""

    def __init__(self):
        super().__init__()
        self.row = nn.Linear(4, 4)

    def forward(self, x, n):
        from torch._higher_order_ops.while_loop import while_loop

        def going(i, x):
            return (i < n) & (x.abs().sum() > 0.5)

        def step(i, x):
            return i + 1, torch.tanh(self.row(x)) * 0.5

        return while_loop(going, step, (torch.zeros((), dtype=torch.int64), x))


def both_ways(tmp_path, net, *calls, **options):
    """Convert the program of a net, exported with the first of the inputs, and compare it on all."""
    net, _, program = made(net, *calls[0], **options)
    model = mslite.Model()
    model.build_from_file(convert(PYTORCH, program, str(tmp_path / "net")).path)
    for inputs in calls:
        shapes = [list(x.shape) for x in inputs]
        if [t.shape for t in model.get_inputs()] != shapes:
            model.resize(model.get_inputs(), shapes)
        with torch.no_grad():
            wanted = net(*inputs)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        found = trial.answers(model, [x.numpy() for x in inputs])
        for a, b in zip(found, (w.numpy() for w in wanted), strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            assert np.allclose(a, b, rtol=1e-5, atol=1e-6), np.abs(a - b).max()


def test_a_branch_is_chosen_by_the_data(tmp_path):
    x = torch.arange(8.0).reshape(2, 4)
    both_ways(tmp_path, Branches(), (x,), (-x,))


def test_a_loop_runs_as_long_as_its_test_holds(tmp_path):
    x = torch.ones(3, 4)
    both_ways(tmp_path, Halving(), *((x * scale, torch.tensor(n)) for scale in (1, 0.01) for n in (0, 1, 9)))


def running(x, weights):
    from torch._higher_order_ops.scan import scan

    return scan(lambda c, r: (c * weights + r[0], c.sum() * r[1]), torch.zeros(4), (x, x * 2))


def test_rows_are_mapped_and_scanned(tmp_path):
    from torch._higher_order_ops.map import map as over

    x, y = torch.randn(5, 4), torch.randn(4)
    both_ways(tmp_path, running, (x, y), (x * 3, -y))
    both_ways(tmp_path, lambda x, y: over(lambda r, y: torch.softmax(r + y, 0), x, y), (x, y), (-x, y))


def test_rows_of_an_open_number_are_mapped(tmp_path):
    from torch._higher_order_ops.map import map as over

    rows = torch.export.Dim("rows", min=2, max=64)
    net = Lambda(lambda x: over(lambda r: torch.relu(r) + r.mean(), x))
    calls = [(torch.randn(n, 4),) for n in (5, 2, 9)]
    both_ways(tmp_path, net, *calls, dynamic_shapes={"x": ({0: rows},)})


def test_what_a_branch_hides_is_listed(tmp_path):
    class Bad(nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda x: torch.special.bessel_j0(x), lambda x: x.erfinv(), (x,))

    _, _, program = made(Bad(), (2, 3))
    found = [str(e) for e in explain(Job(PYTORCH, program, str(tmp_path / "m")))]
    assert len(found) == 2 and "special_bessel_j0" in found[0] and "erfinv" in found[1]
