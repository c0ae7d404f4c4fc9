# Written by tools/gen_stubs.py.
from mycelia.dataset.sources.text.plain import (
    CoNLL2000Dataset as CoNLL2000Dataset, EnWik9Dataset as EnWik9Dataset, IMDBDataset as IMDBDataset,
    PennTreebankDataset as PennTreebankDataset, UDPOSDataset as UDPOSDataset,
    WikiTextDataset as WikiTextDataset,
)
from mycelia.dataset.sources.text.tables import (
    AGNewsDataset as AGNewsDataset, AmazonReviewDataset as AmazonReviewDataset,
    DBpediaDataset as DBpediaDataset, SQuADDataset as SQuADDataset, SST2Dataset as SST2Dataset,
    SogouNewsDataset as SogouNewsDataset, YahooAnswersDataset as YahooAnswersDataset,
    YelpReviewDataset as YelpReviewDataset,
)
from mycelia.dataset.sources.text.translations import (
    IWSLT2016Dataset as IWSLT2016Dataset, IWSLT2017Dataset as IWSLT2017Dataset,
    Multi30kDataset as Multi30kDataset,
)

__all__ = [
    "AGNewsDataset", "AmazonReviewDataset", "CoNLL2000Dataset", "DBpediaDataset", "EnWik9Dataset",
    "IMDBDataset", "IWSLT2016Dataset", "IWSLT2017Dataset", "Multi30kDataset", "PennTreebankDataset",
    "SQuADDataset", "SST2Dataset", "SogouNewsDataset", "UDPOSDataset", "WikiTextDataset",
    "YahooAnswersDataset", "YelpReviewDataset",
]
