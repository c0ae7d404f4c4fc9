"""scipy: linear algebra, minimization and cosine transforms on Tensors, with SciPy's names."""

from mycelia.faces.scipy import fft, linalg, optimize

__all__ = ["fft", "linalg", "optimize"]
