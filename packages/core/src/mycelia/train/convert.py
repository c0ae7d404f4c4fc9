"""Converting networks and models for the second-order optimizer thor."""

from __future__ import annotations

from mycelia.engine.base import errors
from mycelia.nn.cell import Cell
from mycelia.nn.conv import Conv2d
from mycelia.nn.dense import Dense
from mycelia.nn.embedding import Embedding
from mycelia.nn.second_order import Conv2dThor, DenseThor, EmbeddingThor


def _dense(cell: Dense) -> DenseThor:
    made = DenseThor(cell.in_channels, cell.out_channels, has_bias=cell.has_bias, activation=cell.activation)
    made.weight, made.bias = cell.weight, cell.bias
    return made


def _conv(cell: Conv2d) -> Conv2dThor:
    made = Conv2dThor(
        cell.in_channels,
        cell.out_channels,
        cell.kernel_size,
        cell.stride,
        cell.pad_mode,
        cell.padding,
        cell.dilation,
        cell.group,
        cell.has_bias,
    )
    made.weight, made.bias = cell.weight, cell.bias
    return made


def _embedding(cell: Embedding) -> EmbeddingThor:
    made = EmbeddingThor(cell.vocab_size, cell.embedding_size, cell.use_one_hot, padding_idx=cell.padding_idx)
    made.embedding_table = cell.embedding_table
    return made


_CONVERTED = {Dense: _dense, Conv2d: _conv, Embedding: _embedding}


class ConvertNetUtils:
    """Replaces layers of a network by those that thor knows."""

    def convert_to_thor_net(self, net: Cell) -> None:
        """Replace Dense, Conv2d and Embedding in `net` and below; Parameters stay. Errors: TypeError."""
        if not isinstance(net, Cell):
            raise errors.type_error(
                "convert_to_thor_net", f"net must be a Cell, but got {type(net).__name__}"
            )
        for name, cell in net.name_cells().items():
            convert = _CONVERTED.get(type(cell))
            if convert is None:
                self.convert_to_thor_net(cell)
                continue
            names = [(p, p.name) for p in cell.get_parameters()]
            net._set_cell(name, convert(cell))
            for parameter, kept in names:
                parameter.name = kept
        net.update_cell_type("second-order")


class ConvertModelUtils:
    """Makes a Model whose steps thor would take."""

    @staticmethod
    def convert_to_thor_model(
        model,
        network,
        loss_fn=None,
        optimizer=None,
        metrics=None,
        amp_level="O0",
        loss_scale_manager=None,
        keep_batchnorm_fp32=False,
    ):
        """The Model for thor. Another optimizer leaves `model` as it is, and there is no thor here: it needs
        the matrix kernels of an Ascend or GPU backend.
        """
        # `model` has them
        del network, loss_fn, optimizer, metrics, amp_level, loss_scale_manager, keep_batchnorm_fp32
        return model
