"""The callbacks of release 1.0 that write lineage to a SummaryRecord."""

from __future__ import annotations

import numpy as np
import pytest

import mycelia as ms
from mycelia import nn
from mycelia.faces.compat.legacy import EvalLineage, TrainLineage
from mycelia.train import Model, SummaryRecord


def model() -> tuple[Model, ms.dataset.GeneratorDataset]:
    net = nn.Dense(4, 3)
    rows = [(np.ones(4, np.float32), np.int32(1))] * 8
    data = ms.dataset.GeneratorDataset(rows, ["x", "y"], shuffle=False).batch(2)
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    return Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"acc": nn.Accuracy()}), data


def test_lineage_of_a_training_and_of_an_evaluation(tmp_path):
    made, data = model()
    with SummaryRecord(str(tmp_path)) as record:
        callbacks = [TrainLineage(record), EvalLineage(record)]
        made.train(1, data, callbacks=callbacks)
        record.flush()
        (path,) = tmp_path.glob("*_lineage")
        trained = path.read_bytes()
        assert b"Momentum" in trained and b"Dense" in trained and b"CrossEntropyLoss" in trained
        assert b'"acc"' not in trained
        made.eval(data, callbacks=callbacks)
        record.flush()
        assert path.read_bytes()[len(trained) :].count(b'{"acc": 1.0}') == 1


def test_a_record_that_cannot_be_written_ends_a_training_if_that_is_asked_for(tmp_path, capfd):
    class Broken:
        def add_value(self, *arguments):
            raise OSError("no room")

    made, data = model()
    made.train(1, data, callbacks=[TrainLineage(Broken())])
    assert "train_lineage is not recorded: no room" in capfd.readouterr().err
    with pytest.raises(OSError, match="no room"):
        made.train(1, data, callbacks=[TrainLineage(Broken(), raise_exception=True)])
