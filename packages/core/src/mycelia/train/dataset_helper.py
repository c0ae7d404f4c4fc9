"""`DatasetHelper`: iterates a dataset for a training loop; and what hands datasets to devices."""

from __future__ import annotations

from mycelia.engine.base import errors, ignored
from mycelia.nn.cell import Cell


class DatasetHelper:
    """Iterates the batches of a dataset as tuples of Tensors.

    `dataset_sink_mode`: batches go to the network from here either way; in this mode an epoch has
    `sink_size` of them and the data go on from where they stopped.  `sink_size`: -1 for the whole dataset;
    `epoch_num` has no effect.  Errors: TypeError, ValueError for bad arguments.
    """

    @ignored.arguments(epoch_num="each loop over it is one epoch")
    def __init__(self, dataset, dataset_sink_mode=True, sink_size=-1, epoch_num=1):
        if not isinstance(dataset_sink_mode, bool):
            raise errors.type_error(
                "DatasetHelper", f"dataset_sink_mode must be a bool, but got {dataset_sink_mode!r}"
            )
        if isinstance(sink_size, bool) or not isinstance(sink_size, int):
            raise errors.type_error("DatasetHelper", f"sink_size must be an int, but got {sink_size!r}")
        if sink_size < -1 or sink_size == 0:
            raise errors.value_error(
                "DatasetHelper", f"sink_size must be -1 or positive, but got {sink_size}"
            )
        self.dataset, self.dataset_sink_mode, self.epoch_num = dataset, dataset_sink_mode, epoch_num
        self._size = dataset.get_dataset_size() if sink_size == -1 else sink_size
        self._source = None

    def __iter__(self):
        if not self.dataset_sink_mode:
            yield from self._pass()
            return
        for _ in range(self._size):
            if self._source is None:
                self._source = iter(self._pass())
            batch = next(self._source, None)
            if batch is None:
                self._source = iter(self._pass())
                batch = next(self._source)
            yield batch

    def _pass(self):
        """The batches of one pass; a dataset of the user's has an iterator only."""
        return self.dataset.next_epoch() if hasattr(self.dataset, "next_epoch") else iter(self.dataset)

    def sink_size(self) -> int:
        """Batches of one round."""
        return self._size

    def types_shapes(self) -> tuple:
        """The dtypes and the shapes of a batch's columns."""
        return self.dataset.output_types(), self.dataset.output_shapes()

    def get_data_info(self) -> tuple:
        """The same as `types_shapes`."""
        return self.types_shapes()

    def continue_send(self) -> None:
        """Go on with the data: they are made when they are asked for."""

    def stop_send(self) -> None:
        """End the present pass over the data."""
        self._source = None

    def release(self) -> None:
        """Give up what the iteration holds."""
        self._source = None


def connect_network_with_dataset(network, dataset_helper):
    """The network that takes its data from the device's queue: not there.

    Errors: TypeError for other kinds, RuntimeError naming the backends that would have such queues.
    """
    if not isinstance(network, Cell):
        raise errors.type_error(
            "connect_network_with_dataset", f"network must be a Cell, but got {type(network).__name__}"
        )
    raise errors.runtime_error(
        "connect_network_with_dataset",
        "data queues on the device need an Ascend or GPU backend",
        hint="iterate the DatasetHelper and call the network",
    )


def data_sink(fn, dataset, sink_size=1, jit_config=None, input_signature=None):
    """A function that runs `fn` on the next batches from the device's queue: not there.

    Errors: TypeError and ValueError for sink_size; else ValueError naming the backends with such queues.
    """
    if isinstance(sink_size, bool) or not isinstance(sink_size, int):
        raise errors.type_error("data_sink", f"sink_size must be an int, but got {sink_size!r}")
    if sink_size <= 0:
        raise errors.value_error("data_sink", f"sink_size must be positive, but got {sink_size}")
    raise errors.value_error("data_sink", "data queues on the device need an Ascend or GPU backend")
