"""The queue between a pipeline and the device that computes. On a CPU both are in one memory."""

from __future__ import annotations

import contextlib
import queue
import threading
import uuid

from mycelia.dataset import nodes
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.engine.base import errors

_OWNER = "TransferDataset"
_END = object()


class TransferDataset(Dataset):
    """A pipeline that fills a queue in a thread of its own: `Dataset.device_que` makes it, `send` starts it.

    `queue_name`: its name, made up if none is given. Errors: RuntimeError for iterating it.
    """

    device_type, device_id = "CPU", 0

    def __init__(self, source, send_epoch_end=True, create_data_info_queue=False, queue_name=""):
        super().__init__(source)
        owner = "Dataset.device_que"
        nodes.of_type(owner, "send_epoch_end", send_epoch_end, bool)
        nodes.of_type(owner, "create_data_info_queue", create_data_info_queue, bool)
        nodes.of_type(owner, "queue_name", queue_name, str)
        self.queue_name = queue_name or str(uuid.uuid1())
        self.column_name = source.get_col_names()
        self._marks_epochs, self._tells_info = send_epoch_end, create_data_info_queue
        self._filler: _Filler | None = None

    def rows(self, epoch):
        return self.children[0].rows(epoch)

    def create_tuple_iterator(self, *_args, **_keywords):
        """RuntimeError: the rows are the device's."""
        raise errors.runtime_error(_OWNER, "TransferDataset is not iterable; iterate the dataset below it")

    create_dict_iterator = create_tuple_iterator

    def __iter__(self):
        return self.create_tuple_iterator()

    def output_shapes(self, estimate=False):
        """RuntimeError: ask the dataset below it."""
        raise errors.runtime_error(_OWNER, "TransferDataset does not support obtaining output_shapes")

    def output_types(self):
        """RuntimeError: ask the dataset below it."""
        raise errors.runtime_error(_OWNER, "TransferDataset does not support obtaining output_types")

    def send(self, num_epochs: int = -1) -> None:
        """Start filling the queue with the rows of so many epochs, -1: without end."""
        nodes.of_type(f"{_OWNER}.send", "num_epochs", num_epochs, int)
        self.release()
        self._filler = _Filler(self.children[0], num_epochs, self._marks_epochs)

    def get_next(self) -> list | None:
        """The next row in the queue as Tensors; None at the end of an epoch if `send_epoch_end`.

        Errors: RuntimeError before `send` and after the last row; those of the pipeline.
        """
        return self._started("get_next").get()

    def stop_send(self) -> None:
        """Hold the queue up once it is full."""
        if self._filler is not None:
            self._filler.going.clear()

    def continue_send(self) -> None:
        """Go on filling the queue."""
        if self._filler is not None:
            self._filler.going.set()

    def get_data_info(self) -> list[tuple]:
        """Dtype and shape of each column. RuntimeError unless `create_data_info_queue` was asked for."""
        if not self._tells_info or self._filler is None:
            raise errors.runtime_error(_OWNER, "Calling get_data_info with bad state.")
        below = self.children[0]
        return list(zip(below.output_types(), below.output_shapes()))

    def get_send_info(self) -> list[int]:
        """How many rows the queue has got so far, and how many are in it."""
        filler = self._started("get_send_info")
        return [filler.sent, filler.made.qsize()]

    def get_mbuf_queue_size(self) -> int:
        """How many rows are in the queue."""
        return self._started("get_mbuf_queue_size").made.qsize()

    def release(self) -> None:
        """End the thread and let the queue go."""
        if self._filler is not None:
            self._filler.close()
            self._filler = None

    def _started(self, method: str) -> _Filler:
        if self._filler is None:
            raise errors.runtime_error(
                _OWNER, f"Calling {method} with bad state, data queue is not initialized: call send() first"
            )
        return self._filler


class _Filler:
    """The thread and its queue."""

    def __init__(self, source: Dataset, epochs: int, marks_epochs: bool):
        from mycelia.dataset import config

        self.made: queue.Queue = queue.Queue(config.get_prefetch_size())
        self.going, self.sent, self._closed = threading.Event(), 0, False
        self.going.set()
        iterator = source.create_tuple_iterator(num_epochs=epochs)
        self._thread = threading.Thread(
            target=self._fill, args=(iterator, epochs, marks_epochs), name="mycelia device queue", daemon=True
        )
        self._thread.start()

    def _fill(self, iterator, epochs: int, marks_epochs: bool) -> None:
        try:
            epoch = 0
            while epoch != epochs:
                for row in iterator:
                    self._put(row)
                    self.sent += 1
                epoch += 1
                if marks_epochs:
                    self._put(None)
            self._put(_END)
        except queue.Full:
            pass  # nobody wants them any more
        except BaseException as e:
            with contextlib.suppress(queue.Full):
                self._put(e)
        finally:
            iterator.stop()

    def _put(self, item) -> None:
        """Wait until there is room. queue.Full once the queue is closed."""
        while True:
            self.going.wait()
            if self._closed:
                raise queue.Full
            try:
                return self.made.put(item, timeout=0.1)
            except queue.Full:
                continue

    def get(self):
        item = self.made.get()
        if isinstance(item, BaseException):
            raise item
        if item is _END:
            self.made.put(_END)
            raise errors.runtime_error(_OWNER, "all epochs are read")
        return item

    def close(self) -> None:
        self._closed = True
        self.going.set()
        self._thread.join()


@dataset_methods
class Transfer:
    """The method that hands rows to a queue."""

    def device_que(
        self, send_epoch_end: bool = True, create_data_info_queue: bool = False, queue_name: str = ""
    ) -> Dataset:
        """A queue that a thread fills with the rows: see `transfer.TransferDataset`."""
        return TransferDataset(self, send_epoch_end, create_data_info_queue, queue_name)
