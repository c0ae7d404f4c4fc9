"""Transforms of sounds: values of MindSpore, and properties that hold for every sound."""

import numpy as np
import pytest

from mycelia.dataset import audio

SOUND = np.array([[0.1, 0.5, -0.3, 0.8, -0.2, 0.4]], np.float32)
WAVE = np.sin(np.arange(400) * 0.2).astype(np.float32)[None]


def test_spectrum_there_and_back():
    pairs = audio.Spectrogram(64, power=0.0)(WAVE)
    assert pairs.shape == (1, 33, 13, 2) and pairs.dtype == np.float32
    power = audio.Spectrogram(64)(WAVE)
    np.testing.assert_allclose(audio.ComplexNorm(2.0)(pairs), power, rtol=1e-4, atol=1e-5)
    mels = audio.MelScale(10, 16000, n_stft=33)(power)
    np.testing.assert_allclose(audio.MelSpectrogram(16000, 64, n_mels=10)(WAVE), mels, rtol=1e-4, atol=1e-5)


def test_identities():
    np.testing.assert_allclose(audio.Biquad(1, 0, 0, 1, 0, 0)(SOUND), SOUND)
    np.testing.assert_allclose(
        audio.LFilter([1.0, -0.5], [1.0, 0.0])(SOUND)[0, :3], [0.1, 0.55, -0.025], atol=1e-6
    )
    coded = audio.MuLawEncoding()(SOUND)
    np.testing.assert_allclose(audio.MuLawDecoding()(coded), SOUND, atol=0.03)
    np.testing.assert_allclose(audio.Gain(20.0)(SOUND), SOUND * 10, rtol=1e-6)
    faded = audio.Fade(3, 2)(SOUND)[0]
    np.testing.assert_allclose(faded, [0, 0.25, -0.3, 0.8, -0.2, 0], rtol=1e-6)
    assert audio.Resample(8000, 12000)(WAVE).shape == (1, 600)
    assert audio.PitchShift(16000, 4, n_fft=64)(WAVE).shape == WAVE.shape


def test_dtypes_and_masks():
    assert audio.Contrast()(SOUND.astype(np.float64)).dtype == np.float64
    assert audio.Contrast()(np.array([1, 2], np.int16)).dtype == np.float32
    masked = audio.MaskAlongAxis(1, 2, 9.0, 2)(np.zeros((1, 2, 4), np.float32))
    assert masked.tolist() == [[[0, 9, 9, 0]] * 2]
    assert (audio.TimeMasking(True, 3)(np.ones((1, 2, 4), np.float32)) >= 0).all()


def test_banks():
    np.testing.assert_allclose(audio.create_dct(2, 2), [[2, 1.41421356], [2, -1.41421356]], rtol=1e-6)
    bank = audio.melscale_fbanks(20, 100, 7000, 8, 16000)
    assert bank.shape == (20, 8) and bank.dtype == np.float32 and bank.max() <= 1


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ValueError, lambda: audio.AllpassBiquad(0, 1.0)),
        (TypeError, lambda: audio.AllpassBiquad(44100, "a")),
        (RuntimeError, lambda: audio.AllpassBiquad(44100, 200)(np.array([1, 2]))),
        (TypeError, lambda: audio.Gain()(np.float32(1))),
        (RuntimeError, lambda: audio.Spectrogram()(np.float32(1))),
        (RuntimeError, lambda: audio.Gain()(np.array(["a"]))),
        (ValueError, lambda: audio.Spectrogram(win_length=500)),
        (ValueError, lambda: audio.Vol(-1.0)),
        (ValueError, lambda: audio.MelScale(f_min=9000.0)),
        (RuntimeError, lambda: audio.Fade(50)(SOUND)),
        (TypeError, lambda: audio.Dither("TPDF")),
    ],
)
def test_errors(kind, wrong):
    with pytest.raises(kind):
        wrong()


def test_dither_adds_a_triangle():
    """Recorded from MindSpore 2.10, in steps of 16 bits."""
    sound = np.linspace(-1, 1, 9).astype(np.float32)
    found = audio.Dither(audio.DensityFunction.TPDF)(sound) * 32768
    expected = [-32766, -24574, -16383, -8191, 1, 8192, 16384, 24575, 32766]
    np.testing.assert_array_equal(found, expected)
    shaped = audio.Dither(audio.DensityFunction.TPDF, True)(sound) * 32768
    np.testing.assert_array_equal(shaped, [-32766, -24572, -16381, -8190, 2, 8193, 16384, 24575, 32765])
