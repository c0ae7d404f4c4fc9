# Written by tools/gen_stubs.py.
from mycelia.dataset.text.clean import (
    CaseFold as CaseFold, FilterWikipediaXML as FilterWikipediaXML, NormalizeForm as NormalizeForm,
    NormalizeUTF8 as NormalizeUTF8, RegexReplace as RegexReplace,
)
from mycelia.dataset.text.external import (
    JiebaMode as JiebaMode, JiebaTokenizer as JiebaTokenizer,
    SPieceTokenizerLoadType as SPieceTokenizerLoadType, SPieceTokenizerOutType as SPieceTokenizerOutType,
    SentencePieceModel as SentencePieceModel, SentencePieceTokenizer as SentencePieceTokenizer,
    SentencePieceVocab as SentencePieceVocab,
)
from mycelia.dataset.text.sequences import (
    AddToken as AddToken, Lookup as Lookup, Ngram as Ngram, SlidingWindow as SlidingWindow,
    ToNumber as ToNumber, ToVectors as ToVectors, Truncate as Truncate,
    TruncateSequencePair as TruncateSequencePair, to_bytes as to_bytes, to_str as to_str,
)
from mycelia.dataset.text.tokenizers import (
    BasicTokenizer as BasicTokenizer, BertTokenizer as BertTokenizer, PythonTokenizer as PythonTokenizer,
    RegexTokenizer as RegexTokenizer, UnicodeCharTokenizer as UnicodeCharTokenizer,
    UnicodeScriptTokenizer as UnicodeScriptTokenizer, WhitespaceTokenizer as WhitespaceTokenizer,
    WordpieceTokenizer as WordpieceTokenizer,
)
from mycelia.dataset.text.vectors import (
    CharNGram as CharNGram, FastText as FastText, GloVe as GloVe, Vectors as Vectors,
)
from mycelia.dataset.text.vocab import Vocab as Vocab

__all__ = [
    "AddToken", "BasicTokenizer", "BertTokenizer", "CaseFold", "CharNGram", "FastText",
    "FilterWikipediaXML", "GloVe", "JiebaMode", "JiebaTokenizer", "Lookup", "Ngram", "NormalizeForm",
    "NormalizeUTF8", "PythonTokenizer", "RegexReplace", "RegexTokenizer", "SPieceTokenizerLoadType",
    "SPieceTokenizerOutType", "SentencePieceModel", "SentencePieceTokenizer", "SentencePieceVocab",
    "SlidingWindow", "ToNumber", "ToVectors", "Truncate", "TruncateSequencePair", "UnicodeCharTokenizer",
    "UnicodeScriptTokenizer", "Vectors", "Vocab", "WhitespaceTokenizer", "WordpieceTokenizer", "to_bytes",
    "to_str",
]
