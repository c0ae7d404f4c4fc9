"""Alerts that the service keeps, and what meets them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from starlette.requests import Request

from mycelia_insight.runs.alerts import Alert, Hit, WrongAlert
from mycelia_insight.runs.library import Library
from mycelia_insight.service.api.common import name_of, number
from mycelia_insight.service.endpoints import Parameter, RequestError, Table


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`."""

    @table.get("/alerts")
    def alerts(_request: Request) -> dict:
        """Alerts of the base folder, each with its `hits`: tags of runs with points that meet the rule.

        `firing`: how many have some. Archived runs are passed over.
        """
        runs = [run for run in library.runs() if not library.notes.of(run.folder).archived]
        found = [_told(one, library.alerts.hits(one, runs)) for one in library.alerts.all()]
        return {"firing": sum(bool(one["hits"]) for one in found), "alerts": found}

    @table.put("/alerts")
    def add_alert(_request: Request, body: Any) -> dict:
        """Keeps an alert, `{"rule": "loss > 10", "runs": ""}`.

        A rule is `TAG > 10`, two conditions joined by `and` or `or`, `TAG > 10 or < 0`, or `TAG not finite`;
        `runs`, a part of their paths, may be left out. In both a `*` stands for anything.
        """
        if not isinstance(body, dict) or "rule" not in body:
            raise RequestError(400, "the body must be an object with 'rule', and 'runs' if not all are meant")
        try:
            alert = library.alerts.add(body["rule"], body.get("runs", ""))
        except WrongAlert as error:
            raise RequestError(400, str(error)) from error
        except OSError as error:
            raise RequestError(507, f"the alert cannot be kept: {error.strerror}") from error
        return {"id": alert.id, **asdict(alert)}

    @table.delete("/alerts/{alert}", Parameter("alert", str, "the id of an alert"))
    def remove_alert(_request: Request, alert: str) -> dict:
        """Takes an alert away."""
        try:
            if not library.alerts.remove(alert):
                raise RequestError(404, f"there is no alert {alert[:80]!r}")
        except OSError as error:
            raise RequestError(507, f"the alert cannot be taken away: {error.strerror}") from error
        return {"removed": alert}


def _told(alert: Alert, hits: list[Hit]) -> dict:
    told = [{**asdict(hit), "run": name_of(hit.run), "first_value": number(hit.first_value)} for hit in hits]
    return {"id": alert.id, **asdict(alert), "hits": told}
