"""Layers of `mint.nn` with a table or a slope to learn, and the plain ones whose text has mint's names."""

from __future__ import annotations

import numpy as np

from mycelia.engine.base import errors
from mycelia.engine.base.dtypes import float32
from mycelia.engine.tensors.initializer import Normal, initializer
from mycelia.engine.tensors.tensor import Parameter, Tensor
from mycelia.faces.mint.nn import functional as F
from mycelia.nn.cell import Cell
from mycelia.nn.padding import _layer as _padding

ZeroPad1d = _padding("ZeroPad1d", 1, "constant", "zeros")
ZeroPad3d = _padding("ZeroPad3d", 3, "constant", "zeros")


class PReLUExt(Cell):
    """Leaky ReLU with learned slopes, one or one a channel (axis 1). Shapes: any -> same."""

    def __init__(self, num_parameters=1, init=0.25, dtype=None):
        super().__init__()
        slopes = np.full((num_parameters,), init, np.float32)
        self.weight = Parameter(Tensor(slopes, float32 if dtype is None else dtype), name="weight")

    def construct(self, input):
        return F.prelu(input, self.weight)


class EmbeddingExt(Cell):
    """Rows of a table by index. Shapes: [...] -> [..., embedding_dim].

    `padding_idx`: a row that is zero at first and gets no gradient; `max_norm`: rows that are looked up are
    scaled down to that `norm_type`-norm.
    """

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        _freeze=False,
        dtype=None,
    ):
        super().__init__()
        owner = "Embedding"
        for name, value in (("num_embeddings", num_embeddings), ("embedding_dim", embedding_dim)):
            if isinstance(value, bool) or not isinstance(value, int):
                raise errors.type_error(owner, f"{name} must be an int, but got {value!r}")
        for name, value in (("max_norm", max_norm), ("norm_type", norm_type)):
            if value is not None and not isinstance(value, float):
                raise errors.type_error(owner, f"{name} must be a float, but got {value!r}")
        for name, value in (("scale_grad_by_freq", scale_grad_by_freq), ("sparse", sparse)):
            if not isinstance(value, bool):
                raise errors.type_error(owner, f"{name} must be a bool, but got {value!r}")
        if sparse:
            raise errors.value_error(owner, "sparse=True is not supported: gradients are dense")
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.dtype = float32 if dtype is None else dtype
        self.padding_idx = self._row(padding_idx)
        shape = (num_embeddings, embedding_dim)
        if _weight is None:
            _weight = initializer(Normal(1.0, 0.0), shape, self.dtype)
            _weight = _weight.init_data() if hasattr(_weight, "init_data") else _weight
            if self.padding_idx is not None:
                rows = np.arange(num_embeddings)[:, None] == self.padding_idx
                _weight = Tensor(np.where(rows, 0, _weight.float().asnumpy()), self.dtype)
        elif tuple(_weight.shape) != shape:
            raise errors.value_error(
                owner, f"_weight must have the shape {list(shape)}, but has {list(_weight.shape)}"
            )
        self.weight = Parameter(_weight, name="weight", requires_grad=not _freeze)

    def _row(self, index) -> int | None:
        if index is None:
            return None
        n = self.num_embeddings
        if isinstance(index, bool) or not isinstance(index, int):
            raise errors.type_error("Embedding", f"padding_idx must be an int, but got {index!r}")
        if not -n <= index < n:
            raise errors.value_error("Embedding", f"padding_idx must be in [{-n}, {n}), but got {index}")
        return index % n

    def construct(self, input):
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq
        )

    def extend_repr(self):
        return (
            f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, "
            f"padding_idx={self.padding_idx}, max_norm={self.max_norm}, norm_type={self.norm_type}, "
            f"scale_grad_by_freq={self.scale_grad_by_freq}, dtype={self.dtype}"
        )
