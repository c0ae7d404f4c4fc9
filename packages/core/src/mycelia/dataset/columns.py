"""Nodes that choose and name columns: project, rename."""

from __future__ import annotations

from mycelia.dataset import nodes
from mycelia.dataset.pipeline import Dataset, dataset_methods
from mycelia.engine.base import errors


class ProjectDataset(Dataset):
    """Some columns."""

    def __init__(self, source, columns):
        super().__init__(source)
        self.columns = nodes.names("Dataset.project", "columns", columns)

    def get_col_names(self):
        nodes.places("Dataset.project", self.columns, self.children[0].get_col_names())
        return list(self.columns)

    def rows(self, epoch):
        return self._picked(self.children[0].rows(epoch))

    def rows_from(self, epoch, start):
        return self._picked(self.children[0].rows_from(epoch, start))

    def batches(self, epoch, size, drop_remainder):
        """The source's fast batches, if it has some, with these columns."""
        made = nodes.batches(self.children[0], epoch, size, drop_remainder)
        return None if made is None else self._picked(made)

    def _picked(self, rows):
        picked = nodes.places("Dataset.project", self.columns, self.children[0].get_col_names())
        for row in rows:
            yield tuple([row[i] for i in picked])

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number)

    def makes_arrays(self):
        return self.children[0].makes_arrays()


class RenameDataset(Dataset):
    """Other column names."""

    def __init__(self, source, input_columns, output_columns):
        super().__init__(source)
        self.input_columns = nodes.names("Dataset.rename", "input_columns", input_columns)
        self.output_columns = nodes.names("Dataset.rename", "output_columns", output_columns)
        if len(self.input_columns) != len(self.output_columns):
            raise errors.value_error(
                "Dataset.rename",
                f"input_columns {self.input_columns} cannot become output_columns {self.output_columns}",
            )

    def get_col_names(self):
        names = self.children[0].get_col_names()
        nodes.places("Dataset.rename", self.input_columns, names)
        table = dict(zip(self.input_columns, self.output_columns))
        renamed = [table.get(n, n) for n in names]
        twice = sorted({n for n in renamed if renamed.count(n) > 1})
        if twice:
            raise errors.runtime_error("Dataset.rename", f"the new names {twice} are there already")
        return renamed

    def rows(self, epoch):
        self.get_col_names()
        return self.children[0].rows(epoch)

    def rows_from(self, epoch, start):
        self.get_col_names()
        return self.children[0].rows_from(epoch, start)

    def batches(self, epoch, size, drop_remainder):
        """The source's fast batches, if it has some."""
        return nodes.batches(self.children[0], epoch, size, drop_remainder)

    def origin(self, epoch, number):
        return self.children[0].origin(epoch, number)

    def makes_arrays(self):
        return self.children[0].makes_arrays()


@dataset_methods
class Columns:
    """Methods that choose and name columns."""

    def project(self, columns) -> Dataset:
        """Only these columns, in this order."""
        return ProjectDataset(self, columns)

    def rename(self, input_columns, output_columns) -> Dataset:
        """Other names for columns."""
        return RenameDataset(self, input_columns, output_columns)
