"""`python -m mycelia_insight.service`: serve with the settings of the environment."""

from mycelia_insight.service.server import serve
from mycelia_insight.service.settings import of

serve(of({}))
