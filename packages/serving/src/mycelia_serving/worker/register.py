"""`from mycelia_serving.worker.register import declare_model`: the module of declarations under this name."""

import sys

from mycelia_serving.servable import register

for _name in ("method", "model"):
    sys.modules[f"{__name__}.{_name}"] = getattr(register, _name)
sys.modules[__name__] = register
