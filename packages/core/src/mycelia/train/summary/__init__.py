"""Event logs of a training that MindInsight shows."""

from mycelia.train.summary.summary_record import SummaryRecord

__all__ = ["SummaryRecord"]
