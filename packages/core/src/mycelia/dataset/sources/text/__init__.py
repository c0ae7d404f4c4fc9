"""Published sets of texts, one small module per kind of file."""

from mycelia.dataset.sources.text.plain import (
    CoNLL2000Dataset,
    EnWik9Dataset,
    IMDBDataset,
    PennTreebankDataset,
    UDPOSDataset,
    WikiTextDataset,
)
from mycelia.dataset.sources.text.tables import (
    AGNewsDataset,
    AmazonReviewDataset,
    DBpediaDataset,
    SogouNewsDataset,
    SQuADDataset,
    SST2Dataset,
    YahooAnswersDataset,
    YelpReviewDataset,
)
from mycelia.dataset.sources.text.translations import IWSLT2016Dataset, IWSLT2017Dataset, Multi30kDataset

__all__ = [
    "AGNewsDataset", "AmazonReviewDataset", "CoNLL2000Dataset", "DBpediaDataset", "EnWik9Dataset",
    "IMDBDataset", "IWSLT2016Dataset", "IWSLT2017Dataset", "Multi30kDataset", "PennTreebankDataset",
    "SQuADDataset", "SST2Dataset", "SogouNewsDataset", "UDPOSDataset", "WikiTextDataset",
    "YahooAnswersDataset", "YelpReviewDataset",
]  # fmt: skip
