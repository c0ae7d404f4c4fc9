"""Transforms of texts: tokenizers, normal forms, vocabularies and word vectors."""

from mycelia.dataset.text.clean import (
    CaseFold,
    FilterWikipediaXML,
    NormalizeForm,
    NormalizeUTF8,
    RegexReplace,
)
from mycelia.dataset.text.external import (
    JiebaMode,
    JiebaTokenizer,
    SentencePieceModel,
    SentencePieceTokenizer,
    SentencePieceVocab,
    SPieceTokenizerLoadType,
    SPieceTokenizerOutType,
)
from mycelia.dataset.text.sequences import (
    AddToken,
    Lookup,
    Ngram,
    SlidingWindow,
    ToNumber,
    ToVectors,
    Truncate,
    TruncateSequencePair,
    to_bytes,
    to_str,
)
from mycelia.dataset.text.tokenizers import (
    BasicTokenizer,
    BertTokenizer,
    PythonTokenizer,
    RegexTokenizer,
    UnicodeCharTokenizer,
    UnicodeScriptTokenizer,
    WhitespaceTokenizer,
    WordpieceTokenizer,
)
from mycelia.dataset.text.vectors import CharNGram, FastText, GloVe, Vectors
from mycelia.dataset.text.vocab import Vocab

__all__ = [
    "AddToken", "BasicTokenizer", "BertTokenizer", "CaseFold", "CharNGram", "FastText", "FilterWikipediaXML",
    "GloVe", "JiebaMode", "JiebaTokenizer", "Lookup", "Ngram", "NormalizeForm", "NormalizeUTF8",
    "PythonTokenizer", "RegexReplace", "RegexTokenizer", "SPieceTokenizerLoadType", "SPieceTokenizerOutType",
    "SentencePieceModel", "SentencePieceTokenizer", "SentencePieceVocab", "SlidingWindow", "ToNumber",
    "ToVectors", "Truncate", "TruncateSequencePair", "UnicodeCharTokenizer", "UnicodeScriptTokenizer",
    "Vectors", "Vocab", "WhitespaceTokenizer", "WordpieceTokenizer", "to_bytes", "to_str",
]  # fmt: skip
