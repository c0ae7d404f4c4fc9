"""alerts: whether points of runs meet rules, for scripts and CI."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer


def alerts(
    context: typer.Context,
    summary_base_dir: Annotated[
        str | None, typer.Option(help="The folder of runs; the current one if nothing is said.")
    ] = None,
    workspace: Annotated[
        str | None, typer.Option(help="Where the service keeps alerts; ~/mycelia-insight if nothing is said.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(
            help='Instead of those: "loss > 10", "val/* < 0.1 or > 1", "loss not finite"; may come again.'
        ),
    ] = None,
    runs: Annotated[
        str, typer.Option(help="Runs that --rule is for: a part of their paths, * for anything.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell which points of runs meet the alerts of the pages, or rules; exit code 1 if there are any."""
    from mycelia_insight.commands.service import WrongOption, settings_of
    from mycelia_insight.exchange.output import folder
    from mycelia_insight.exchange.runs import opened
    from mycelia_insight.runs.alerts import Alerts, WrongAlert, checked
    from mycelia_insight.runs.moments import when
    from mycelia_insight.runs.notes import Notes
    from mycelia_insight.service.api.common import number

    given = settings_of(context, {"workspace": workspace, "summary_base_dir": summary_base_dir})
    base = given.summary_base_dir
    folder(base, "--summary-base-dir")
    kept = Alerts(given.workspace, base)
    if runs and not rule:
        raise WrongOption("--runs is for --rule; alerts that are kept name their runs themselves", context)
    try:
        asked = [checked(one, runs) for one in rule] if rule else kept.all()
    except WrongAlert as error:
        raise WrongOption(f"--rule: {error}", context) from error
    with opened(base) as library:
        notes = Notes(given.workspace)
        listed = [run for run in library.runs() if not notes.of(run.folder).archived]
        found = [(alert, kept.hits(alert, listed)) for alert in asked]
    if as_json:
        told = [
            {
                **asdict(alert),
                "hits": [{**asdict(hit), "first_value": number(hit.first_value)} for hit in hits],
            }
            for alert, hits in found
        ]
        typer.echo(json.dumps(told, indent=2))
    else:
        for alert, hits in found:
            for hit in hits:
                many = f"{hit.points} points, the first" if hit.points > 1 else "1 point,"
                typer.echo(
                    f"{hit.run}: {alert.rule}: {hit.tag} has {many} {hit.first_value:g} "
                    f"at step {hit.first_step}, {when(hit.first_time)}"
                )
        firing = sum(bool(hits) for _, hits in found)
        typer.echo(f"{len(asked)} alert{'' if len(asked) == 1 else 's'}, {firing} met")
    raise typer.Exit(1 if any(hits for _, hits in found) else 0)
