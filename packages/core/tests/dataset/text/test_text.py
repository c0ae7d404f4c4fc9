"""Transforms of texts: results and errors as in MindSpore."""

import numpy as np
import pytest

import mycelia as ms
from mycelia import dataset as ds
from mycelia.dataset import text

WORDS = text.Vocab.from_list(["a", "hello", "[UNK]", "##d", "read", "##ing", "我"])


def array(*values):
    return np.array(values)


@pytest.mark.parametrize(
    ("transform", "value", "expected"),
    [
        (text.AddToken("T", False), array("a", "b"), ["a", "b", "T"]),
        (text.AddToken("T"), np.array([["a"], ["b"]]), [["T", "a"], ["T", "b"]]),
        (text.Lookup(WORDS, "[UNK]"), array("a", "zz"), [0, 2]),
        (text.Ngram([1, 2], ("_", 4), ("+", 1), "-"), array("a", "b"), ["a", "b", "_-a", "a-b", "b-+"]),
        (text.Ngram(5), array("a", "b"), [""]),
        (text.SlidingWindow(2), array(1, 2, 3), [[1, 2], [2, 3]]),
        (text.SlidingWindow(5), array(1, 2, 3), []),
        (text.ToNumber(ms.int8), array("1", " +2x", "1.7"), [1, 2, 1]),
        (text.ToNumber(ms.float32), array("1e3", "2.5"), [1000, 2.5]),
        (text.Truncate(2), array("a", "b", "c"), ["a", "b"]),
        (text.UnicodeCharTokenizer(), "ab 我", ["a", "b", " ", "我"]),
        (text.WhitespaceTokenizer(), "  a b\t我\u3000", ["a", "b", "我"]),
        (text.WhitespaceTokenizer(), "  ", [""]),
        (text.UnicodeScriptTokenizer(), "Go to 北京,123 ёж!", ["Go", "to", "北京", ",123", "ёж", "!"]),
        (text.RegexTokenizer(r"\s+", r"\s+"), "a b  c", ["a", " ", "b", "  ", "c"]),
        (text.RegexTokenizer(r"\p{Han}", r"\p{Han}"), "ab我c", ["ab", "我", "c"]),
        (text.RegexReplace(r"(\w)(\w)", "$2$1"), array("abcd", "xy"), ["badc", "yx"]),
        (text.CaseFold(), array("ΑΒ ß", "Éa"), ["αβ ss", "éa"]),
        (text.NormalizeUTF8(), "ﬁ", "fi"),
        (text.FilterWikipediaXML(), "See [http://x.org China] 42 <b>x</b>", "see http x org china four two"),
        (
            text.BasicTokenizer(True), "To 北京, [UNK] DÉjà!",
            ["to", "北", "京", ",", "[UNK]", "deja", "!"],
        ),
        (text.BasicTokenizer(preserve_unused_token=False), "[UNK] a", ["[", "UNK", "]", "a"]),
        (text.WordpieceTokenizer(WORDS), array("reading", "xyz", ""), ["read", "##ing", "[UNK]"]),
        (text.WordpieceTokenizer(WORDS, unknown_token=""), array("xyz", "ad"), ["xyz", "a", "##d"]),
        (text.BertTokenizer(WORDS), "hello reading 我", ["hello", "read", "##ing", "我"]),
        (text.PythonTokenizer(str.split), np.array("a b"), ["a", "b"]),
    ],
)  # fmt: skip
def test_values(transform, value, expected):
    np.testing.assert_array_equal(transform(value), np.array(expected))


def test_offsets_count_bytes():
    tokens, start, end = text.BertTokenizer(WORDS, lower_case=True, with_offsets=True)("Hello 我 reading")
    assert tokens.tolist() == ["hello", "我", "read", "##ing"]
    assert start.tolist() == [0, 6, 10, 14] and end.tolist() == [5, 9, 14, 17] and start.dtype == np.uint32


def test_pairs_lose_the_longer_end_first():
    first, second = text.TruncateSequencePair(5)(array(1, 2, 3), array(4, 5, 6))
    assert first.tolist() == [1, 2, 3] and second.tolist() == [4, 5]


def test_vocab(tmp_path):
    words = ds.NumpySlicesDataset({"t": ["a", "b", "a", "c", "c", "c"]}, shuffle=False)
    assert text.Vocab.from_dataset(words, "t").vocab() == {"c": 0, "a": 1, "b": 2}
    some = text.Vocab.from_dataset(words, ["t"], (2, None), 1, ["<p>"], special_first=False)
    assert some.vocab() == {"c": 0, "<p>": 1}
    file = tmp_path / "words.txt"
    file.write_text("ok,1\nno,2\nyes,3\n")
    assert text.Vocab.from_file(str(file), ",", 2, ["<s>"]).vocab() == {"<s>": 0, "ok": 1, "no": 2}
    assert WORDS.tokens_to_ids(["a", "zz"]) == [0, -1] and WORDS.tokens_to_ids("hello") == 1
    assert WORDS.ids_to_tokens([0, 4]) == ["a", "read"] and WORDS.ids_to_tokens(99) == ""


def test_vectors(tmp_path):
    file = tmp_path / "words.vec"
    file.write_text("2 2\nok 0.5 1\nno 2 3\n")
    found = text.ToVectors(text.FastText.from_file(str(file)), [7, 7], True)(array("OK", "zz"))
    assert found.tolist() == [[0.5, 1], [7, 7]] and found.dtype == np.float32
    file.write_text("2gram-ok 4 5\n3gram-#BEGIN#ok 1 2\n")
    assert text.ToVectors(text.CharNGram.from_file(str(file)))("ok").tolist() == [2.5, 3.5]
    with pytest.raises(RuntimeError, match="glove"):
        text.GloVe.from_file(str(file))


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ValueError, lambda: text.Vocab.from_list(["a", "a"])),
        (ValueError, lambda: text.Vocab.from_dict({"a": -1})),
        (TypeError, lambda: text.Vocab.from_dict({"a": "b"})),
        (RuntimeError, lambda: text.Vocab.from_file("/none")),
        (RuntimeError, lambda: text.Vocab().vocab()),
        (RuntimeError, lambda: text.Lookup(WORDS)(array("zz"))),
        (TypeError, lambda: text.Lookup("x")),
        (ValueError, lambda: text.Ngram([])),
        (RuntimeError, lambda: text.SlidingWindow(2)(np.ones((1, 4)))),
        (TypeError, lambda: text.ToNumber(ms.bool_)),
        (RuntimeError, lambda: text.ToNumber(ms.int8)(array("1000"))),
        (RuntimeError, lambda: text.UnicodeCharTokenizer()(array("a", "b"))),
        (RuntimeError, lambda: text.RegexReplace("(", "")("a")),
        (TypeError, lambda: text.WhitespaceTokenizer(1)),
        (ValueError, lambda: text.WordpieceTokenizer(None)),
        (RuntimeError, lambda: text.PythonTokenizer(lambda s: 1 / 0)(np.array("a"))),
        (ValueError, lambda: text.JiebaTokenizer("/none", "/none")),
        (TypeError, lambda: text.to_str(["a"])),
        (ValueError, lambda: text.to_bytes(["a"])),
    ],
)
def test_errors(kind, wrong):
    with pytest.raises(kind):
        wrong()


def test_a_word_in_an_array_has_a_number():
    vocab = text.Vocab.from_list(["a", "b"])
    assert vocab.tokens_to_ids(np.array("b")) == 1 and vocab.ids_to_tokens(np.array(0)) == "a"
