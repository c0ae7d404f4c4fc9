"""`mycelia.train.metrics`: the path under which MindSpore scripts import metrics."""

from mycelia.nn.metrics import *  # noqa: F403
from mycelia.nn.metrics import __all__  # noqa: F401
